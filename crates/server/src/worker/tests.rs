//! Every route and every way of asking, against the scripted backend.

use brunt_io::backend::{Event, Slot};
use brunt_proto::http2::frame;
use brunt_proto::websocket::{Opcode, put_head};

use super::tests_http2::begun_stream;
use super::tests_websocket::upgrade;
use super::*;
use crate::batch::{INPUT_BUFFERS, NULL_ANSWERS_MAX, Room};
use crate::connection::INPUT_BYTES_MAX;
use crate::counters::Counters;
use crate::pattern::pattern_byte;
use crate::raw::samples;
use crate::scripted::{Scripted, Seen};

const MS: u64 = 1_000_000;
const OK_HEAD: &str = "HTTP/1.1 200 OK\r\n";
const CHUNKED: &str = "Transfer-Encoding: chunked\r\nTrailer: Brunt-Length\r\n\r\n";
const NULL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const NULL_CLOSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

pub(crate) const SETTINGS: WorkerSettings = WorkerSettings {
    connections_max: 1_000,
    spin: false,
    is_tls: false,
    idle_timeout_ns: None,
    input_bytes_max: 64 << 20,
    output_bytes_max: 256 << 20,
    http2: Http2Options {
        streams_max: Http2Options::STREAMS_MAX,
        requests_max: None,
        window_bytes: Http2Options::WINDOW_BYTES,
    },
};

/// A worker and its scripted clients.
pub(crate) struct Site<S: Service = Http> {
    pub(crate) worker: Worker<Scripted, S>,
}

impl Site {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self::with_settings(shared, SETTINGS)
    }

    pub(super) fn with_settings(shared: &Arc<Shared>, settings: WorkerSettings) -> Self {
        Self::of(Worker::of_http(Scripted::default(), shared, 0, settings))
    }

    /// The only worker of a server.
    pub(super) fn alone() -> Self {
        Self::new(&Arc::new(Shared::new(1)))
    }

    /// The only worker of a server, with a client.
    pub(super) fn connected() -> (Self, Slot) {
        let mut site = Self::alone();
        let slot = site.connect();
        (site, slot)
    }
}

impl<S: Service> Site<S>
where
    Worker<Scripted, S>: Serve,
{
    pub(crate) fn of(mut worker: Worker<Scripted, S>) -> Self {
        worker.turn().unwrap();
        Self { worker }
    }

    pub(crate) fn totals(&self) -> Counters {
        self.worker.shared.totals()
    }

    pub(crate) fn script(&mut self) -> &mut Scripted {
        &mut self.worker.backend
    }

    pub(crate) fn turns(&mut self, count: u32) -> &mut Self {
        for _ in 0..count {
            self.worker.turn().unwrap();
        }
        self
    }

    pub(crate) fn connect(&mut self) -> Slot {
        let slot = self.script().connect();
        self.turns(1);
        slot
    }

    pub(crate) fn say(&mut self, slot: Slot, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.script().arrive(slot, bytes.as_ref());
        self.turns(1)
    }

    /// A client is gone.
    pub(super) fn lose(&mut self, slot: Slot) -> &mut Self {
        let reset = Event::ReceiveFailed(slot, libc::ECONNRESET);
        self.script().happen(reset);
        self.turns(1)
    }

    pub(crate) fn seen(&mut self, slot: Slot) -> &Seen {
        &self.worker.backend.seen[&slot]
    }

    /// When each send to a client began.
    pub(super) fn sent_at(&mut self, slot: Slot) -> Vec<u64> {
        self.seen(slot).sends.iter().map(|send| send.0).collect()
    }

    pub(crate) fn text(&mut self, slot: Slot) -> String {
        String::from_utf8_lossy(&self.seen(slot).sent).into_owned()
    }
}

pub(super) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

fn body(bytes: u64) -> String {
    (0..bytes)
        .map(|position| char::from(pattern_byte(position)))
        .collect()
}

/// Whether the equation of the counters holds, for a server with nothing in flight.
pub(super) fn assert_balanced(counters: &Counters) {
    assert_eq!(
        counters.requests + counters.requests_malformed + counters.websocket_messages_received,
        counters.replies
            + counters.websocket_messages_answered
            + counters.faults
            + counters.requests_abandoned,
        "{counters:?}"
    );
}

/// What one request gets on a connection of its own: the bytes, and whether it is closed then.
fn exchange(request: &str) -> (String, bool) {
    let (mut site, slot) = Site::connected();
    site.say(slot, request).turns(200);
    let outcome = (site.text(slot), site.seen(slot).closed);
    let counters = site.totals();
    assert_balanced(&counters);
    assert_eq!(
        counters.requests + counters.requests_malformed,
        1,
        "{request:?}"
    );
    assert_eq!(counters.bytes_received, request.len() as u64);
    assert_eq!(counters.bytes_sent, outcome.0.len() as u64, "{request:?}");
    assert_eq!(counters.connections_live, u64::from(!outcome.1));
    outcome
}

#[test]
fn routes_answer_as_documented() {
    let sized = |bytes| format!("{OK_HEAD}Content-Length: {bytes}\r\n\r\n{}", body(bytes));
    let half = |bytes: u64| {
        let sent = body(bytes / 2);
        format!("{OK_HEAD}Content-Length: {bytes}\r\n\r\n{sent}")
    };
    let chunked = format!("{OK_HEAD}{CHUNKED}");
    let null = "
        / /?query /delay/1s /stall/1s/1s /drift/1ms/3ms/2s /locked/1ms /compute/0us
        /limit/1 /limit/1g/599 /refuse-after/1 /random-close/0";
    for path in null.split_whitespace() {
        assert_eq!(exchange(&get(path)), (NULL.to_owned(), false), "{path}");
    }
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
    let old = "HTTP/1.0 200 OK\r\nContent-Length: 26\r\nConnection: keep-alive\r\n\r\n";
    let kept = [
        ("/bytes/0", sized(0)),
        ("/bytes/30", sized(30)),
        ("/bytes/1m", sized(1 << 20)),
        (
            "/chunked/0",
            format!("{chunked}0\r\nBrunt-Length: 0\r\n\r\n"),
        ),
        (
            "/chunked/30",
            format!(
                "{chunked}1e\r\n{}\r\n0\r\nBrunt-Length: 30\r\n\r\n",
                body(30)
            ),
        ),
        ("/status/204", "HTTP/1.1 204 No Content\r\n\r\n".to_owned()),
        ("/status/404", NULL.replace("200 OK", "404 Not Found")),
        ("/status/799", NULL.replace("200 OK", "799 ")),
        (
            "/interim/2",
            format!("HTTP/1.1 100 Continue\r\n\r\n{interim}{NULL}"),
        ),
        ("/http10-keepalive", format!("{old}{}", body(26))),
        ("/never", String::new()),
    ];
    let closed = [
        ("/close", NULL_CLOSE.to_owned()),
        ("/http10", format!("HTTP/1.0 200 OK\r\n\r\n{}", body(26))),
        ("/reset", String::new()),
        ("/truncate/9", half(9)),
        ("/truncate/100k", half(100 << 10)),
        ("/random-close/100", String::new()),
    ];
    for (is_closed, cases) in [(false, &kept[..]), (true, &closed)] {
        for (path, text) in cases {
            assert_eq!(exchange(&get(path)), (text.clone(), is_closed), "{path}");
        }
    }
    let (text, _) = exchange(&get("/refuse-after/0"));
    assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\nContent-Length: "));
    let (text, closed) = exchange(&get("/nowhere"));
    assert!(text.starts_with("HTTP/1.1 404 Not Found\r\nContent-Length: ") && !closed);
    let (text, _) = exchange(&get("/routes"));
    assert!(text.contains("/refuse-after/N"), "{text}");
}

#[test]
fn the_way_of_asking_shapes_the_answer() {
    let head = |path: &str| format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let old = |path: &str| format!("GET {path} HTTP/1.0\r\n\r\n");
    let with = |method: &str, fields: &str| format!("{method} / HTTP/1.1\r\nHost: x\r\n{fields}");
    let asked = format!("{OK_HEAD}Content-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    let sized = with("POST", "Content-Length: 3\r\n\r\nabc");
    let in_chunks = with(
        "PUT",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    let kept = [
        (
            head("/bytes/30"),
            format!("{OK_HEAD}Content-Length: 30\r\n\r\n"),
        ),
        (head("/chunked/30"), format!("{OK_HEAD}{CHUNKED}")),
        (
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(),
            asked,
        ),
        (sized, NULL.to_owned()),
        (in_chunks, NULL.to_owned()),
    ];
    let last = get("/delay/1ms").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let closed = [
        (old("/"), NULL_CLOSE.to_owned()),
        (old("/interim/2"), NULL_CLOSE.to_owned()),
        (
            old("/chunked/5"),
            format!("{OK_HEAD}Connection: close\r\n\r\nabcde"),
        ),
        (last, NULL_CLOSE.to_owned()),
    ];
    for (is_closed, cases) in [(false, &kept[..]), (true, &closed)] {
        for (request, text) in cases {
            assert_eq!(exchange(request), (text.clone(), is_closed), "{request:?}");
        }
    }
    let (text, closed) = exchange("GET / HTTP/1.1\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n") && closed);
    assert!(text.contains("\r\nConnection: close\r\n"));
}

#[test]
fn raw_answers_end_as_they_say() {
    samples::install();
    for path in samples::PATHS {
        let (mut site, slot) = Site::connected();
        site.say(slot, get(path)).turns(3);
        let sent = &site.seen(slot).sent;
        assert!(sent.starts_with(samples::START.as_bytes()), "{path}");
        assert_eq!(site.seen(slot).closed, path == "/raw/close", "{path}");
        // A client that leaves ends even what has no end.
        site.script().happen(Event::Ended(slot));
        site.script().happen(Event::SendFailed(slot, 32));
        site.turns(1);
        assert!(site.seen(slot).closed, "{path}");
        assert_eq!(site.totals().faults_by_kind["raw"], 1);
    }
}

#[test]
fn timed_answers_come_at_their_instant() {
    let (mut site, slot) = Site::connected();
    let mut answered = |path: &str, at_ns: u64| {
        site.script().now_ns = at_ns;
        let before = site.seen(slot).sends.len();
        site.say(slot, get(path)).turns(10);
        site.sent_at(slot).split_off(before)
    };
    const S: u64 = 1_000 * MS;
    for (path, at_ns, later_ns) in [
        ("/delay/500us", 100 * S, 500_000),
        ("/delay/0ms", 200 * S, 0),
        ("/stall/100ms/1s", 300 * S, 100 * MS),
        ("/stall/100ms/1s", 400 * S + 99 * MS, MS),
        ("/stall/100ms/1s", 500 * S + 100 * MS, 0),
        ("/drift/1ms/3ms/1000s", 510 * S, 2 * MS + 20_000),
        ("/drift/3ms/1ms/1000s", 550 * S, 19 * MS / 10),
        ("/drift/1ms/3ms/1s", 590 * S, 3 * MS),
    ] {
        assert_eq!(answered(path, at_ns), [at_ns + later_ns], "{path}");
    }
}

#[test]
fn a_delay_counts_from_the_last_byte_of_its_request() {
    let (mut site, slot) = Site::connected();
    let request = get("/delay/3ms");
    let (first, rest) = request.split_at(12);
    let (mut now_ns, mut expected) = (1_000 * MS, Vec::new());
    // In two pieces.
    site.script().now_ns = now_ns;
    site.say(slot, first);
    now_ns += 2 * MS;
    site.script().now_ns = now_ns;
    site.say(slot, rest).turns(4);
    expected.push(now_ns + 3 * MS);
    assert_eq!(site.sent_at(slot), expected);
    // Behind a reply that the kernel has not taken yet.
    now_ns += 100 * MS;
    site.script().now_ns = now_ns;
    site.script().hold_sends = true;
    site.say(slot, get("/"));
    expected.push(now_ns);
    now_ns += MS;
    site.script().now_ns = now_ns;
    site.say(slot, &request);
    expected.push(now_ns + 3 * MS);
    site.script().now_ns = now_ns + 2 * MS;
    site.script().release();
    site.turns(4);
    assert_eq!(site.sent_at(slot), expected);
    // Pipelined: each has its turn when the reply before it is sent.
    now_ns += 100 * MS;
    site.script().now_ns = now_ns;
    site.say(slot, request.repeat(3)).turns(12);
    expected.extend([now_ns + 3 * MS, now_ns + 6 * MS, now_ns + 9 * MS]);
    assert_eq!(site.sent_at(slot), expected);
    let counters = site.totals();
    assert_eq!((counters.replies, counters.replies_delayed), (6, 5));
    assert_eq!(counters.lateness_ns_max, Some(0));
}

#[test]
fn a_stall_ends_for_all_at_once() {
    let mut site = Site::alone();
    let slots: Vec<Slot> = (0..50).map(|_| site.connect()).collect();
    let stalled = get("/stall/100ms/1s");
    let start_ns = 7_000 * MS;
    for (at_ms, slot) in (0..).step_by(2).zip(&slots) {
        site.script().now_ns = start_ns + at_ms * MS;
        // What is pipelined behind the first is answered at once, too.
        site.say(*slot, stalled.repeat(2));
    }
    site.turns(4);
    let end_ns = start_ns + 100 * MS;
    for slot in &slots {
        assert_eq!(site.sent_at(*slot), [end_ns; 2]);
    }
    let counters = site.totals();
    assert_eq!((counters.replies, counters.replies_delayed), (100, 50));
    assert_eq!(counters.lateness_ns_max, Some(0));
}

#[test]
fn turns_are_taken_one_after_the_other() {
    let mut site = Site::alone();
    let slots: Vec<Slot> = (0..5).map(|_| site.connect()).collect();
    let start_ns = 1_000 * MS;
    site.script().now_ns = start_ns;
    for slot in &slots {
        site.script()
            .arrive(*slot, get("/locked/3ms").repeat(2).as_bytes());
    }
    site.turns(40);
    for (at, slot) in (1..).zip(&slots) {
        // A pipelined request queues again when the one before it is answered.
        let expected = [start_ns + at * 3 * MS, start_ns + (at + 5) * 3 * MS];
        assert_eq!(site.sent_at(*slot), expected);
    }
    let slot = site.connect();
    let now_ns = start_ns + 500 * MS;
    site.script().now_ns = now_ns;
    site.say(slot, get("/locked/3ms")).turns(3);
    assert_eq!(site.seen(slot).sends[0].0, now_ns + 3 * MS, "nobody before");
    // A client that leaves its queue does not hold up the others for good.
    site.say(slot, get("/locked/60m"));
    site.lose(slot);
    assert_eq!(site.totals().requests_abandoned, 1);
    assert_balanced(&site.totals());
}

#[test]
fn computing_keeps_the_worker_busy() {
    let shared = Arc::new(Shared::new(1));
    let mut site = Site::new(&shared);
    let slots = [site.connect(), site.connect()];
    site.script().reading_ns = 1_000;
    let start_ns = 1_000 * MS;
    site.script().now_ns = start_ns;
    for slot in slots {
        site.script()
            .arrive(slot, get("/compute/2ms").repeat(2).as_bytes());
    }
    site.turns(6);
    // Each pipelined answer is sent before the next one is computed, and the clients in turn.
    let sends = slots.map(|slot| site.sent_at(slot)).concat();
    for (at, sent_ns) in [1, 3, 2, 4].into_iter().zip(&sends) {
        let due_ns = start_ns + at * 2 * MS;
        assert!((due_ns..due_ns + MS / 10).contains(sent_ns), "{sends:?}");
    }
    assert_eq!(sends.len(), 4);
    let counters = shared.totals();
    assert_eq!((counters.replies, counters.replies_delayed), (4, 0));
    // It ends with the server.
    shared.stop.store(true, Ordering::Relaxed);
    site.say(slots[0], get("/compute/60m")).turns(2);
    assert_eq!(shared.totals().replies, 5);
}

#[test]
fn a_limit_refuses_what_exceeds_it() {
    let mut site = Site::alone();
    let slots = [site.connect(), site.connect()];
    let refused =
        |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n");
    let cases = [
        ("/limit/200", refused("429 Too Many Requests")),
        ("/limit/200/503", refused("503 Service Unavailable")),
    ];
    for (path, refused) in cases {
        let before = slots.map(|slot| site.text(slot).len());
        // Two at once, for two connections together; 5 ms later, one more.
        site.say(slots[0], get(path).repeat(2));
        site.say(slots[1], get(path));
        site.script().now_ns += 4 * MS;
        site.say(slots[1], get(path));
        site.script().now_ns += MS;
        site.say(slots[1], get(path));
        assert_eq!(site.text(slots[0])[before[0]..], NULL.repeat(2));
        assert_eq!(
            site.text(slots[1])[before[1]..],
            format!("{refused}{refused}{NULL}")
        );
        site.script().now_ns += 1_000 * MS;
    }
    let close = "GET /limit/200 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (_, slot) = (site.say(slots[0], get("/limit/200").repeat(2)), slots[0]);
    site.say(slot, close).turns(3);
    assert!(
        site.text(slot)
            .ends_with("\r\nRetry-After: 1\r\nConnection: close\r\n\r\n")
    );
    assert!(site.seen(slot).closed);
    assert_balanced(&site.totals());
}

#[test]
fn lateness_is_told() {
    let (mut site, slot) = Site::connected();
    for (oversleep_ns, mean_ns, max_ns) in [(60_000, 60_000, 60_000), (20_000, 40_000, 60_000)] {
        site.script().oversleep_ns = oversleep_ns;
        site.say(slot, get("/delay/1ms")).turns(3);
        let counters = site.totals();
        assert_eq!(counters.lateness_ns_mean, Some(mean_ns));
        assert_eq!(counters.lateness_ns_max, Some(max_ns));
    }
}

#[test]
fn a_spinning_worker_sleeps_only_without_connections() {
    let shared = Arc::new(Shared::new(1));
    let spinning = WorkerSettings {
        spin: true,
        ..SETTINGS
    };
    let mut site = Site::with_settings(&shared, spinning);
    site.script().poll_ns = 700;
    site.script().oversleep_ns = 60_000;
    assert_eq!(site.turns(3).script().sleeps, 4);
    let slot = site.connect();
    site.say(slot, get("/delay/1ms")).turns(2_000);
    let counters = shared.totals();
    assert_eq!(counters.replies_delayed, 1);
    assert!(counters.lateness_ns_max < Some(700), "{counters:?}");
    assert_eq!(site.script().sleeps, 4);
    site.script().happen(Event::Ended(slot));
    assert_eq!(site.turns(3).script().sleeps, 6);
}

#[test]
fn pipelined_null_requests_share_one_send_without_a_copy() {
    let (mut site, slot) = Site::connected();
    let many = NULL_ANSWERS_MAX as usize + 10;
    site.say(slot, get("/").repeat(3)).turns(2);
    let counted = (site.text(slot), site.seen(slot).sends.len());
    assert_eq!(counted, (NULL.repeat(3), 1));
    site.say(slot, get("/").repeat(many)).turns(2);
    assert_eq!(site.text(slot), NULL.repeat(3 + many));
    let seen = site.seen(slot);
    assert_eq!((seen.sends.len(), seen.shared_sends), (3, 3));
    let work = &site.worker.connections[slot.0 as usize].work;
    assert!(work.is_none(), "idle again");
    assert_eq!(site.totals().replies_by_status[&200], 3 + many as u64);
}

#[test]
fn any_cut_and_any_pace_give_the_same_answers() {
    let requests = [
        get("/"),
        get("/bytes/40k"),
        "POST /status/201 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345".to_owned(),
        get("/delay/1ms"),
        get("/"),
        "PUT /chunked/20k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\n12345\r\n0\r\n\r\n"
            .to_owned(),
        get("/bytes/2"),
        get("/close"),
        get("/never to be answered"),
    ]
    .concat();
    let run = |pieces: &[&str], hold: bool| {
        let (mut site, slot) = Site::connected();
        site.script().hold_sends = hold;
        for piece in pieces {
            site.say(slot, piece);
        }
        site.script().release();
        site.turns(40);
        assert!(site.seen(slot).closed);
        assert_balanced(&site.totals());
        assert_eq!(site.totals().requests, 8);
        site.text(slot)
    };
    let whole = run(&[&requests], false);
    assert_eq!(whole.matches("HTTP/1.1 20").count(), 8);
    for cut in 1..requests.len() {
        let (first, second) = requests.split_at(cut);
        assert_eq!(run(&[first, second], false), whole, "cut at {cut}");
        assert_eq!(run(&[first, second], true), whole, "cut at {cut}, slow");
    }
}

#[test]
fn a_body_is_waited_for_and_asked_for() {
    let (mut site, slot) = Site::connected();
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    site.say(slot, head).turns(1);
    assert_eq!(site.text(slot), "HTTP/1.1 100 Continue\r\n\r\n");
    site.say(slot, "1234").turns(1);
    assert_eq!(site.totals().requests, 0, "not complete");
    site.say(slot, "56789").turns(1);
    assert!(site.text(slot).ends_with(NULL));
    let counters = site.totals();
    let replies = (counters.replies_interim, counters.replies);
    assert_eq!((counters.requests, replies), (1, (1, 1)));
    assert_eq!(counters.requests_by_method["POST"], 1);
}

#[test]
fn counters_do_not_count_themselves() {
    let (mut site, slot) = Site::connected();
    let asked = ["/", "/counters", "/bytes/5", "/counters"].map(get);
    site.say(slot, asked.concat()).turns(2);
    let text = site.text(slot);
    let reports: Vec<Counters> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [first, second] = &reports[..] else {
        panic!("{text}")
    };
    let counted = (first.requests, first.replies, first.bytes_sent);
    assert_eq!(counted, (1, 1, NULL.len() as u64));
    let counted = (second.requests, second.replies, second.counters_requests);
    assert_eq!(counted, (2, 2, 2));
    let sized = format!("{OK_HEAD}Content-Length: 5\r\n\r\nabcde");
    assert_eq!(second.bytes_sent, (NULL.len() + sized.len()) as u64);
    assert_eq!(
        second.bytes_received,
        (get("/").len() + get("/bytes/5").len()) as u64
    );
    assert_eq!(&site.totals(), second);
}

#[test]
fn a_client_that_leaves_is_let_go() {
    let mut site = Site::alone();
    let left_at = [
        "",
        "GET",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
    ];
    for bytes in left_at {
        let slot = site.connect();
        site.say(slot, bytes);
        site.script().happen(Event::Ended(slot));
        assert!(site.turns(1).seen(slot).closed, "{bytes:?}");
    }
    // Half-closed clients still get what they asked for.
    let slot = site.connect();
    site.script().arrive(slot, get("/delay/5ms").as_bytes());
    site.script().happen(Event::Ended(slot));
    site.turns(5);
    let counted = (site.text(slot), site.seen(slot).closed);
    assert_eq!(counted, (NULL.to_owned(), true));
    // A lost connection leaves no timer behind.
    let slot = site.connect();
    site.say(slot, get("/delay/60m"));
    assert_eq!(site.worker.wakes.count(), 1);
    assert!(site.lose(slot).seen(slot).closed);
    assert_eq!(site.worker.wakes.count(), 0);
    let counters = site.totals();
    assert_eq!((counters.requests, counters.requests_abandoned), (2, 1));
    assert_balanced(&counters);
    let counted = (counters.connections_accepted, counters.connections_live);
    assert_eq!(counted, (5, 0));
}

/// A connection without progress is closed: idle connections, half heads and half prefaces that
/// come byte by byte, answers that nobody reads and those that never come. What waits for its time,
/// bodies and messages on which bytes come, and a client that asks now and then stay.
#[test]
fn connections_on_which_nothing_gets_on_are_closed() {
    const TIMEOUT_NS: u64 = 800 * MS;
    let mut site = Site::alone();
    site.worker.calendar = Calendar::new(Some(TIMEOUT_NS));
    let [quiet, half, preface, never] = std::array::from_fn(|_| site.connect());
    let [delayed, body, chunks, message, stream, asking] = std::array::from_fn(|_| site.connect());
    site.say(preface, "PRI * HT");
    site.say(never, get("/never"));
    site.say(delayed, get("/delay/10s"));
    let post = |fields| format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
    site.say(body, post("Content-Length: 10000"));
    site.say(chunks, post("Transfer-Encoding: chunked"));
    let mut begun = upgrade("/websocket").into_bytes();
    put_head(&mut begun, Opcode::Binary, true, 10_000, Some([0; 4]));
    site.say(message, begun);
    site.say(stream, begun_stream());
    site.say(half, "G");
    for _ in 0..40 {
        site.script().now_ns += TIMEOUT_NS / 20;
        let mut data = Vec::new();
        frame::write_data_header(&mut data, 1, 1, false);
        data.push(b'x');
        for (slot, bytes) in [
            (half, &b"x"[..]),
            (body, b"x"),
            (chunks, b"1\r\nx\r\n"),
            (message, b"x"),
            (stream, &data),
        ] {
            if !site.seen(slot).closed {
                site.say(slot, bytes);
            }
        }
        site.say(asking, get("/"));
    }
    for slot in [quiet, half, preface, never] {
        assert!(site.seen(slot).closed, "{slot:?}");
    }
    for slot in [delayed, body, chunks, message, stream, asking] {
        assert!(!site.seen(slot).closed, "{slot:?}");
    }
    assert_eq!(site.totals().connections_timed_out, 4);
    // A client that does not read.
    site.script().hold_sends = true;
    site.say(asking, get("/bytes/1m"));
    assert!(!site.seen(asking).closed);
    for _ in 0..20 {
        site.script().now_ns += TIMEOUT_NS / 10;
        site.turns(1);
    }
    assert!(site.seen(asking).closed);
    assert!(!site.seen(delayed).closed);
}

/// Many clients that leave much behind a delayed answer do not take the room of those that come
/// later; what is refused is counted.
#[test]
fn input_of_all_connections_together_is_bounded() {
    let mut site = Site::alone();
    site.worker.service.room = Room::new(1 << 20, 1_000, INPUT_BUFFERS);
    let hoarders: Vec<_> = (0..100).map(|_| site.connect()).collect();
    let piece = vec![b'x'; 4 * 1024];
    for &slot in &hoarders {
        site.say(slot, get("/delay/60m"));
        for _ in 0..32 {
            if !site.seen(slot).closed {
                site.say(slot, &piece);
            }
        }
        assert!(site.worker.service.room.shared_bytes() <= 1 << 20);
    }
    let refused = site.totals().connections_overflowed;
    assert!(refused > 0);
    let honest = site.connect();
    let request = get("/");
    let (start, end) = request.split_at(10);
    site.say(honest, start);
    site.say(honest, end);
    assert!(!site.seen(honest).closed);
    assert_eq!(site.seen(honest).sent, NULL.as_bytes());
    assert_eq!(site.totals().connections_overflowed, refused);
    for slot in hoarders {
        if !site.seen(slot).closed {
            site.lose(slot);
        }
    }
    site.turns(2);
    assert_eq!(site.worker.service.room.shared_bytes(), 0);
}

#[test]
fn input_behind_an_unfinished_reply_is_bounded() {
    let (mut site, slot) = Site::connected();
    site.say(slot, get("/delay/60m"));
    let piece = vec![b'x'; 64 * 1024];
    for _ in 0..INPUT_BYTES_MAX / piece.len() {
        site.say(slot, &piece);
    }
    assert!(!site.seen(slot).closed);
    assert!(site.say(slot, b"x").seen(slot).closed);
    assert_eq!(site.totals().connections_overflowed, 1);
    // What is never answered is not kept at all.
    let slot = site.connect();
    site.say(slot, get("/never"));
    for _ in 0..2 * INPUT_BYTES_MAX / piece.len() {
        site.say(slot, &piece);
    }
    assert!(!site.seen(slot).closed);
}
