//! ab's text of a run. Writing to a string cannot fail.

use std::fmt::Write;

use super::html;
use super::measured::{Failed, Measured};
use super::options::Options;
use super::times;
use super::usage::banner;

/// What is printed when the load begins, with this request.
pub fn heading(options: &Options, request: &[u8]) -> String {
    let mut text = banner(options.html.is_some());
    if options.html.is_none() {
        let host = &options.url.host;
        let _ = write!(text, "Benchmarking {host} ");
        if let Some(proxy) = &options.proxy {
            let _ = write!(text, "[through {}:{}] ", proxy.host, proxy.port);
        }
        text.push_str("(be patient)");
        text.push_str(match options.progress_every {
            Some(_) => "\n",
            None => "...",
        });
    }
    if options.prints_replies() {
        let request = String::from_utf8_lossy(request);
        let head = request.split_inclusive("\r\n\r\n").next().unwrap_or("");
        let method = &options.method;
        let _ = writeln!(text, "INFO: {method} header == \n---\n{head}\n---");
    }
    text
}

/// What is printed at the end of a run with this outcome.
pub fn report(options: &Options, measured: &Measured) -> String {
    let mut text = String::new();
    for reply in &measured.replies {
        let _ = writeln!(text, "LOG: header received:\n{}", reply.text.lines());
        if options.verbosity >= 3 {
            let _ = writeln!(text, "LOG: Response code = {}", reply.status.printable());
        }
    }
    if options.progress_every.is_none() {
        text.push_str("..done\n");
    }
    text.push_str("\n\n");
    if let Some(html) = &options.html {
        text.push_str(&html::table(html, options, measured));
        return text;
    }
    server(options, measured, &mut text);
    counts(options, measured, &mut text);
    rates(options, measured, &mut text);
    let total = &measured.times.total;
    if measured.complete > 0 {
        times::table(&measured.times, options.confidence, &mut text);
        if options.percentiles && total.total() > 1 {
            times::percentiles(total, &mut text);
        }
    }
    text
}

/// All percentiles, for the file of `-e`.
pub fn csv(measured: &Measured) -> String {
    times::csv(&measured.times.total)
}

fn line(text: &mut String, name: &str, value: &dyn std::fmt::Display) {
    let _ = writeln!(text, "{name:<23} {value}");
}

fn server(options: &Options, measured: &Measured, text: &mut String) {
    line(text, "Server Software:", &measured.server.lines());
    line(text, "Server Hostname:", &options.url.host);
    line(text, "Server Port:", &options.url.port);
    if let Some(tls) = &measured.tls {
        line(text, "SSL/TLS Protocol:", &tls.protocol);
        if let Some(key) = &tls.temporary_key {
            line(text, "Server Temp Key:", key);
        }
        if let Some(name) = &tls.server_name {
            line(text, "TLS Server Name:", name);
        }
    }
    text.push('\n');
    line(text, "Document Path:", &options.url.path);
    if options.any_length {
        line(text, "Document Length:", &"Variable");
    } else {
        let bytes = format!("{} bytes", measured.document_bytes);
        line(text, "Document Length:", &bytes);
    }
    text.push('\n');
}

fn counts(options: &Options, measured: &Measured, text: &mut String) {
    let failed = measured.failed;
    line(text, "Concurrency Level:", &options.concurrency);
    let taken = format!("{:.3} seconds", measured.taken_ns as f64 / 1e9);
    line(text, "Time taken for tests:", &taken);
    line(text, "Complete requests:", &measured.complete);
    line(text, "Failed requests:", &failed.total());
    if failed.total() > 0 {
        let Failed {
            connect,
            receive,
            length,
        } = failed;
        let _ = writeln!(
            text,
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: 0)"
        );
    }
    if measured.non_2xx > 0 {
        line(text, "Non-2xx responses:", &measured.non_2xx);
    }
    if options.keep_alive {
        line(text, "Keep-Alive requests:", &measured.kept);
    }
    let bytes = format!("{} bytes", measured.bytes);
    line(text, "Total transferred:", &bytes);
    if options.body.is_some() {
        line(text, "Total body sent:", &measured.sent_bytes);
    }
    let bytes = format!("{} bytes", measured.content_bytes);
    line(text, "HTML transferred:", &bytes);
}

fn rates(options: &Options, measured: &Measured, text: &mut String) {
    let taken_s = measured.taken_ns as f64 / 1e9;
    let complete = measured.complete as f64;
    if taken_s <= 0.0 || complete == 0.0 {
        return;
    }
    let per_s = format!("{:.2} [#/sec] (mean)", complete / taken_s);
    line(text, "Requests per second:", &per_s);
    let ms = taken_s * 1e3 / complete;
    let concurrent = f64::from(options.concurrency.get()) * ms;
    line(
        text,
        "Time per request:",
        &format!("{concurrent:.3} [ms] (mean)"),
    );
    let across = "(mean, across all concurrent requests)";
    line(text, "Time per request:", &format!("{ms:.3} [ms] {across}"));
    let kib_per_s = |bytes: u64| bytes as f64 / 1024.0 / taken_s;
    let received = format!("{:.2} [Kbytes/sec] received", kib_per_s(measured.bytes));
    line(text, "Transfer rate:", &received);
    if options.body.is_some() {
        let sent = kib_per_s(measured.sent_bytes);
        line(text, "", &format!("{sent:.2} kb/s sent"));
        let both = kib_per_s(measured.bytes + measured.sent_bytes);
        line(text, "", &format!("{both:.2} kb/s total"));
    }
}

#[cfg(test)]
mod tests {
    use brunt_report::Foreign;

    use super::*;
    use crate::ab::times::{ConnectionTimes, Times};
    use crate::shell::words;

    fn options(line: &str) -> Options {
        let words = words(line);
        Options::parse("ab", &words).expect(line)
    }

    #[test]
    fn the_text_is_abs() {
        // Captured from ab, with times that give its table.
        let of = |us: u32| Times::of((0..20).map(|number| us + number * 10).collect());
        let measured = Measured {
            server: Foreign::of(b"testd/1.0"),
            document_bytes: 14,
            content_bytes: 280,
            kept: 20,
            taken_ns: 224_280_000,
            complete: 20,
            bytes: 3_420,
            times: ConnectionTimes {
                connect: of(20),
                processing: of(20_600),
                waiting: of(20_600),
                total: of(20_620),
            },
            ..Measured::default()
        };
        let options = options("-k -n 20 -c 2 http://127.0.0.1:18090/");
        let text = heading(&options, b"") + &report(&options, &measured);
        let expected = "\
This is ApacheBench, Version 2.3 <$Revision$>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/
Licensed to The Apache Software Foundation, http://www.apache.org/

Benchmarking 127.0.0.1 (be patient).....done


Server Software:        testd/1.0
Server Hostname:        127.0.0.1
Server Port:            18090

Document Path:          /
Document Length:        14 bytes

Concurrency Level:      2
Time taken for tests:   0.224 seconds
Complete requests:      20
Failed requests:        0
Keep-Alive requests:    20
Total transferred:      3420 bytes
HTML transferred:       280 bytes
Requests per second:    89.17 [#/sec] (mean)
Time per request:       22.428 [ms] (mean)
Time per request:       11.214 [ms] (mean, across all concurrent requests)
Transfer rate:          14.89 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.1      0       0
Processing:    21   21   0.1     21      21
Waiting:       21   21   0.1     21      21
Total:         21   21   0.1     21      21

Percentage of the requests served within a certain time (ms)
  50%     21
  66%     21
  75%     21
  80%     21
  90%     21
  95%     21
  98%     21
  99%     21
 100%     21 (longest request)
";
        assert_eq!(text, expected);
    }
}
