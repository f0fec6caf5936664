//! ab's report as a table in HTML.

use brunt_report::html_text;

use super::measured::Measured;
use super::options::{Html, Options};
use super::times::{Times, ms};

/// The table of a run with this outcome.
pub(super) fn table(html: &Html, options: &Options, measured: &Measured) -> String {
    let mut table = Table {
        html,
        text: format!("<table {}>\n", html.table),
    };
    table.server(options, measured);
    table.counts(options, measured);
    table.rates(options, measured);
    if measured.complete > 0 {
        table.times(measured);
    }
    table.text.push_str("</table>\n");
    table.text
}

struct Table<'a> {
    html: &'a Html,
    text: String,
}

impl Table<'_> {
    fn row(&mut self, cells: &str) {
        let row = format!("<tr {}>{cells}</tr>\n", self.html.row);
        self.text.push_str(&row);
    }

    fn pair(&mut self, name: &str, value: &dyn std::fmt::Display) {
        let cell = &self.html.cell;
        let cells = format!("<th colspan=2 {cell}>{name}</th><td colspan=2 {cell}>{value}</td>");
        self.row(&cells);
    }

    fn server(&mut self, options: &Options, measured: &Measured) {
        self.pair("Server Software:", &measured.server.html());
        self.pair("Server Hostname:", &html_text(&options.url.host));
        self.pair("Server Port:", &options.url.port);
        self.pair("Document Path:", &html_text(&options.url.path));
        if options.any_length {
            self.pair("Document Length:", &"Variable");
        } else {
            let bytes = format!("{} bytes", measured.document_bytes);
            self.pair("Document Length:", &bytes);
        }
    }

    fn counts(&mut self, options: &Options, measured: &Measured) {
        let failed = measured.failed;
        self.pair("Concurrency Level:", &options.concurrency);
        let taken = format!("{:.3} seconds", measured.taken_ns as f64 / 1e9);
        self.pair("Time taken for tests:", &taken);
        self.pair("Complete requests:", &measured.complete);
        self.pair("Failed requests:", &failed.total());
        if failed.total() > 0 {
            // It has no place for what broke while a reply was read.
            let (connect, length) = (failed.connect, failed.length);
            let cells = format!(
                "<td colspan=4 {} >   (Connect: {connect}, Length: {length}, Exceptions: {})</td>",
                self.html.cell, failed.receive
            );
            self.row(&cells);
        }
        if measured.non_2xx > 0 {
            self.pair("Non-2xx responses:", &measured.non_2xx);
        }
        if options.keep_alive {
            self.pair("Keep-Alive requests:", &measured.kept);
        }
        self.pair("Total transferred:", &format!("{} bytes", measured.bytes));
        if options.body.is_some() {
            self.pair("Total body sent:", &measured.sent_bytes);
        }
        let bytes = format!("{} bytes", measured.content_bytes);
        self.pair("HTML transferred:", &bytes);
    }

    fn rates(&mut self, options: &Options, measured: &Measured) {
        let taken_s = measured.taken_ns as f64 / 1e9;
        if taken_s <= 0.0 {
            return;
        }
        let per_s = measured.complete as f64 / taken_s;
        self.pair("Requests per second:", &format!("{per_s:.2}"));
        let kib_per_s = |bytes: u64| bytes as f64 / 1024.0 / taken_s;
        let received = format!("{:.2} kb/s received", kib_per_s(measured.bytes));
        self.pair("Transfer rate:", &received);
        if options.body.is_some() {
            let both = measured.bytes + measured.sent_bytes;
            for (bytes, word) in [(measured.sent_bytes, "sent"), (both, "total")] {
                let cell = &self.html.cell;
                let rate = kib_per_s(bytes);
                let value = format!("{rate:.2} kb/s {word}");
                let cells =
                    format!("<td colspan=2 {cell}>&nbsp;</td><td colspan=2 {cell}>{value}</td>");
                self.row(&cells);
            }
        }
    }

    fn times(&mut self, measured: &Measured) {
        let cell = self.html.cell.clone();
        self.row(&format!("<th {cell} colspan=4>Connection Times (ms)</th>"));
        self.row(&format!(
            "<th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   <th {cell}>max</th>"
        ));
        let of = |times: &Times| {
            let (min_us, max_us) = times.range();
            let mean_ms = ms(times.sum()) / times.total().max(1);
            [ms(min_us), mean_ms, ms(max_us)]
        };
        let (connect, total) = (of(&measured.times.connect), of(&measured.times.total));
        // What lies between the two, and not the times of processing themselves.
        let mut between = total;
        for (between, connect) in between.iter_mut().zip(connect) {
            *between = between.saturating_sub(connect);
        }
        for (name, columns) in [
            ("Connect:", connect),
            ("Processing:", between),
            ("Total:", total),
        ] {
            let columns = columns.map(|ms| format!("<td {cell}>{ms:5}</td>"));
            self.row(&format!("<th {cell}>{name}</th>{}", columns.concat()));
        }
    }
}
