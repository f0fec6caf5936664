//! Tests of httperf's command line.

use super::*;
use crate::shell::words;

fn parse(line: &str) -> Result<Options, Ending> {
    let words = words(line);
    Options::parse("httperf", &words)
}

#[test]
fn command_lines_are_read() {
    let calls = |connections, calls| Workload::Calls { connections, calls };
    let options = parse("--ser=h --por 81 --ur /x --num-con 10 --num-ca 3 --ra 20 --timeo 5");
    assert_eq!(options.expect_err("ambiguous").code, 1);
    let line = "--server=h --port 81 --uri /x --num-con 10 --num-ca 3 --ra 20 --timeo 5 word";
    let options = parse(line).expect("good");
    assert_eq!(
        (&*options.server, options.port, &*options.uri),
        ("h", 81, "/x")
    );
    assert_eq!(options.workload, calls(10, 3));
    assert_eq!(
        (options.period, options.timeout_s),
        (Period::Fixed(0.05), 5.0)
    );
    let options = parse("--ssl --hog --period=u1,3 -v").expect("good");
    assert_eq!(
        (options.port, options.hog, options.is_verbose),
        (443, true, true)
    );
    assert_eq!(options.period, Period::Uniform(1.0, 3.0));
    let options = parse("--wsess=5,7,0.5 --burst-len 3 --session-cookie --num-calls 9");
    let sessions = Workload::Sessions {
        sessions: 5,
        calls: 7,
        think_s: 0.5,
    };
    assert_eq!(options.expect("good").workload, sessions);
    let options = parse("--wsesslog=5,1,a,b.log --wset=10,0.5 --client 3/5").expect("good");
    let log = Workload::Log {
        sessions: 5,
        think_s: 1.0,
        path: "a,b.log".into(),
    };
    assert_eq!((options.workload, options.client), (log, (3, 5)));
    let set = Uris::Set {
        requests: 10,
        step: 0.5,
    };
    assert_eq!(options.uris, set);
}

#[test]
fn secrets_are_not_shown() {
    let words = [
        "--server=h",
        "--add-header",
        "Cookie: hush\\nX: hush\\n",
        "--uri=/x?hush",
    ];
    let words = words.map(str::to_owned);
    let expected = [
        "--server",
        "h",
        "--add-header",
        "Cookie: ...",
        "--uri",
        "/x?...",
    ];
    assert_eq!(shown(&words), expected);
}

#[test]
fn periods() {
    for (typed, period) in [
        ("0", Period::Sequential),
        ("0.5", Period::Fixed(0.5)),
        ("d2", Period::Fixed(2.0)),
        ("e0.1", Period::Exponential(0.1)),
        (
            "v0.5,10,0.1",
            Period::Steps(vec![(0.5, 10.0), (0.1, f64::INFINITY)]),
        ),
    ] {
        assert_eq!(
            parse(&format!("--period {typed}")).expect(typed).period,
            period
        );
    }
}
