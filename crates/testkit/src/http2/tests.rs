//! The simulated server driven by hand, frame by frame.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use brunt_io::backend::{Backend, ClientBackend, Event, Outgoing, Peer, Slot};
use brunt_io::virtual_machine::VirtualMachine;
use brunt_load::{HttpChoice, Spoken};
use brunt_proto::http2::frame::{
    self, ErrorCode, FrameHeader, HEADER_BYTES, Kind, PREFACE, Setting, flags,
};
use brunt_proto::http2::hpack::{Bytes, Decoder, Indexing, encode_field};
use brunt_proto::tls::ALPN_HTTP2;
use brunt_server::HEAD_BYTES_MAX;

use crate::http2::settings::SettingsChange;
use crate::{
    AfterMalformed, Costs, Framing, RESET_CODES, ServiceTime, Sim, SimCounts, SimFaults,
    SimMachine, SimServer, SimSettings,
};

const MS: u64 = 1_000_000;
const SLOT: Slot = Slot(0);

/// A server 100 µs away that takes 1 ms.
fn settings(change: impl FnOnce(&mut SimServer)) -> SimSettings {
    let mut server = SimServer {
        service: ServiceTime::Constant(MS),
        ..SimServer::default()
    };
    change(&mut server);
    SimSettings {
        network_ns: 100_000,
        costs: Costs::NONE,
        server,
        ..SimSettings::new(7)
    }
}

/// What came on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Heard {
    /// `:status` of each head; empty for one without it.
    statuses: Vec<String>,
    content_length: Option<usize>,
    data: usize,
    has_ended: bool,
    reset: Option<u32>,
}

/// A client moved by hand.
struct Hand {
    sim: Sim,
    machine: SimMachine,
    gathered: Vec<u8>,
    out: Vec<u8>,
    is_sending: bool,
    decoder: Decoder<Bytes>,
    block: Vec<u8>,
    heard: BTreeMap<u32, Heard>,
    /// Streams in the order in which they ended.
    ended: Vec<u32>,
    settings: Vec<Vec<Setting>>,
    acknowledged: u32,
    pings: u32,
    windows: BTreeMap<u32, u32>,
    goaways: Vec<(u32, u32)>,
    /// How the connection ended.
    over: Option<Event>,
    acknowledges: bool,
}

impl Hand {
    /// Connected; nothing was sent yet.
    fn connected(settings: &SimSettings) -> Self {
        let mut machine = SimMachine::new(settings.clone());
        let planned = Spoken::Http(HttpChoice::HTTP2);
        let negotiated = machine.negotiate(&planned, Some(ALPN_HTTP2), None);
        negotiated.expect("clear text");
        let mut sim = machine.start_worker(0, 0);
        let peer = Peer::Unix("simulated".into());
        sim.open(SLOT, &peer, None).expect("an attempt");
        sim.wait(None).expect("a simulation");
        assert_eq!(sim.next_event(), Some(Event::Connected(SLOT)));
        Self {
            sim,
            machine,
            gathered: Vec::new(),
            out: Vec::new(),
            is_sending: false,
            decoder: Decoder::new(4_096),
            block: Vec::new(),
            heard: BTreeMap::new(),
            ended: Vec::new(),
            settings: Vec::new(),
            acknowledged: 0,
            pings: 0,
            windows: BTreeMap::new(),
            goaways: Vec::new(),
            over: None,
            acknowledges: true,
        }
    }

    /// Preface and settings are exchanged.
    fn open(settings: &SimSettings, own: &[Setting]) -> Self {
        let mut hand = Self::connected(settings);
        hand.out.extend_from_slice(PREFACE);
        frame::write_settings(&mut hand.out, own);
        hand.pass(MS);
        hand
    }

    /// Puts a request into the next send.
    fn request(&mut self, stream: u32, method: &str, ends: bool) {
        let mut block = Vec::new();
        let fields = [
            (":method", method),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "simulated"),
        ];
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            encode_field(&mut block, name, value, Indexing::Without);
        }
        frame::write_head(&mut self.out, stream, &block, ends, 16_384);
    }

    fn data(&mut self, stream: u32, bytes: u32, ends: bool) {
        frame::write_data_header(&mut self.out, stream, bytes, ends);
        self.out.resize(self.out.len() + bytes as usize, b'b');
    }

    /// Sends what there is, and lets time pass.
    fn pass(&mut self, ns: u64) {
        let until_ns = self.machine.now_ns(0) + ns;
        loop {
            if !self.out.is_empty() && !self.is_sending && self.over.is_none() {
                let bytes = std::mem::take(&mut self.out);
                self.is_sending = true;
                self.sim.send(SLOT, Outgoing::Owned(bytes));
            }
            self.sim.wait(Some(until_ns)).expect("a simulation");
            let mut is_idle = true;
            while let Some(event) = self.sim.next_event() {
                is_idle = false;
                match event {
                    Event::Received(_) => {
                        let bytes = self.sim.received().to_vec();
                        self.gathered.extend_from_slice(&bytes);
                        self.read();
                    }
                    Event::Sent(_) => self.is_sending = false,
                    other => self.over = Some(other),
                }
            }
            if is_idle && self.machine.now_ns(0) >= until_ns {
                return;
            }
        }
    }

    fn read(&mut self) {
        while let Some((header, payload)) = self.next_frame() {
            let heard = self.heard.entry(header.stream);
            match header.kind {
                Kind::Data => {
                    let heard = heard.or_default();
                    heard.data += payload.len();
                    heard.has_ended |= header.has(flags::END_STREAM);
                }
                Kind::Headers => {
                    let heard = heard.or_default();
                    self.block.extend_from_slice(&payload);
                    assert!(header.has(flags::END_HEADERS));
                    let (mut status, mut length) = (String::new(), None);
                    let block = std::mem::take(&mut self.block);
                    self.decoder
                        .decode(&block, &mut Vec::new(), |(name, value), _| {
                            let value = String::from_utf8_lossy(value).into_owned();
                            match name {
                                b":status" => status = value,
                                b"content-length" => length = value.parse().ok(),
                                _ => {}
                            }
                        })
                        .expect("a well-formed head");
                    heard.statuses.push(status);
                    heard.content_length = heard.content_length.or(length);
                    heard.has_ended |= header.has(flags::END_STREAM);
                }
                Kind::RstStream => {
                    let code = frame::rst_stream(&payload).expect("a code").number();
                    heard.or_default().reset = Some(code);
                }
                Kind::Settings if header.has(flags::ACK) => self.acknowledged += 1,
                Kind::Settings => {
                    let settings = frame::settings(&payload).expect("settings");
                    self.settings.push(settings.collect());
                    if self.acknowledges {
                        frame::write_settings_ack(&mut self.out);
                    }
                }
                Kind::Ping if header.has(flags::ACK) => self.pings += 1,
                Kind::Ping => {
                    let payload = frame::ping(&payload).expect("a PING");
                    if self.acknowledges {
                        frame::write_ping(&mut self.out, payload, true);
                    }
                }
                Kind::GoAway => {
                    let (last, code) = frame::go_away(&payload).expect("a GOAWAY");
                    self.goaways.push((last, code.number()));
                }
                Kind::WindowUpdate => {
                    let bytes = frame::window_update(&payload).expect("a window");
                    *self.windows.entry(header.stream).or_default() += bytes;
                }
                _ => assert_eq!(header.kind, Kind::Other(0xfa)),
            }
            if self
                .heard
                .get(&header.stream)
                .is_some_and(|heard| heard.has_ended)
                && !self.ended.contains(&header.stream)
            {
                self.ended.push(header.stream);
            }
        }
    }

    fn next_frame(&mut self) -> Option<(FrameHeader, Vec<u8>)> {
        let header = FrameHeader::read(self.gathered.first_chunk()?);
        let length = HEADER_BYTES + header.length as usize;
        if self.gathered.len() < length {
            return None;
        }
        let payload = self.gathered[HEADER_BYTES..length].to_vec();
        self.gathered.drain(..length);
        Some((header, payload))
    }

    /// Closes, and gives the server's counts, which must add up.
    fn close(mut self) -> SimCounts {
        self.sim.close(SLOT);
        drop(self.sim);
        let counts = self.machine.counts();
        assert_eq!(
            counts.requests_sent,
            counts.requests + counts.requests_lost,
            "{counts:?}"
        );
        let others = counts.not_processed + counts.cancelled + counts.abandoned;
        assert_eq!(
            counts.requests,
            counts.replies + counts.faults() + others,
            "{counts:?}"
        );
        counts
    }
}

/// A client without a limit to what the server may send.
const WIDE: [Setting; 1] = [Setting::InitialWindowSize((1 << 31) - 1)];

#[test]
fn settings_are_exchanged_first() {
    let mut hand = Hand::open(&settings(|_| {}), &WIDE);
    let expected = [
        Setting::MaxConcurrentStreams(128),
        Setting::InitialWindowSize(65_535),
        Setting::MaxHeaderListSize(HEAD_BYTES_MAX as u32),
    ];
    assert_eq!(hand.settings, [expected]);
    assert_eq!(hand.acknowledged, 1);
    frame::write_ping(&mut hand.out, [9; 8], false);
    hand.pass(MS);
    assert_eq!(hand.pings, 1);
    let counts = hand.close();
    assert_eq!((counts.settings, counts.settings_acknowledged), (1, 1));
    assert_eq!(counts.connections_established, 1);
    assert_eq!(counts.violations, 0);
}

#[test]
fn streams_are_served_at_once_and_answered_as_they_are_done() {
    let settings = settings(|server| {
        server.service = ServiceTime::Uniform {
            min_ns: MS,
            max_ns: 9 * MS,
        };
    });
    let mut hand = Hand::open(&settings, &WIDE);
    let streams: Vec<u32> = (0..100).map(|number| 2 * number + 1).collect();
    for &stream in &streams {
        hand.request(stream, "GET", true);
    }
    hand.pass(10 * MS);
    assert_ne!(hand.ended, streams, "in the order of the requests");
    hand.ended.sort_unstable();
    assert_eq!(hand.ended, streams);
    let counts = hand.close();
    assert_eq!((counts.replies, counts.replies_delivered), (100, 100));
}

#[test]
fn each_answer_is_well_formed() {
    let mut cases = Vec::new();
    for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
        for (method, body_bytes) in [("GET", 0), ("GET", 40_000), ("HEAD", 100)] {
            cases.push((framing, method, body_bytes));
        }
    }
    for (framing, method, body_bytes) in cases {
        for table_bytes in [4_096, 0] {
            let what = format!("{framing:?}, {method}, {body_bytes}, {table_bytes}");
            let settings = settings(|server| {
                server.framing = framing;
                server.body_bytes = body_bytes;
                server.interim = 2;
                server.pieces_max = NonZeroU32::new(5).expect("not 0");
                server.piece_gap_ns = 10_000;
                server.faults.error_status = 0.3;
                server.faults.extra_bytes = 0.3;
            });
            let own = [
                Setting::InitialWindowSize((1 << 31) - 1),
                Setting::HeaderTableSize(table_bytes),
            ];
            let mut hand = Hand::open(&settings, &own);
            frame::write_window_update(&mut hand.out, 0, 1 << 30);
            for number in 0..100 {
                hand.request(2 * number + 1, method, true);
                if number % 10 == 0 {
                    hand.pass(3 * MS);
                }
            }
            hand.pass(50 * MS);
            assert_eq!(hand.ended.len(), 100, "{what}");
            let mut errors = 0;
            for heard in hand.heard.values().filter(|heard| heard.has_ended) {
                if heard.statuses == ["503"] {
                    errors += 1;
                    assert_eq!((heard.content_length, heard.data), (Some(0), 0), "{what}");
                    continue;
                }
                let has_length = framing == Framing::Length;
                // Trailers have no status.
                let expected: &[&str] = match (has_length, method) {
                    (true, _) if body_bytes == 0 => &["100", "103", "200"],
                    (false, "GET") => &["200", ""],
                    _ => &["200"],
                };
                assert_eq!(heard.statuses, expected, "{what}");
                let length = has_length.then_some(body_bytes as usize);
                assert_eq!(heard.content_length, length, "{what}");
                let body_bytes = if method == "HEAD" { 0 } else { body_bytes };
                assert_eq!(heard.data, body_bytes as usize, "{what}");
            }
            let counts = hand.close();
            assert_eq!(counts.replies_delivered, 100, "{what}");
            assert_eq!(counts.replies_error, errors, "{what}");
            assert!(counts.extra_bytes > 0, "{what}");
        }
    }
}

#[test]
fn after_its_last_request_a_connection_is_left() {
    let settings = settings(|server| server.close_after = NonZeroU64::new(10));
    let mut hand = Hand::open(&settings, &WIDE);
    for number in 0..15 {
        hand.request(2 * number + 1, "GET", true);
    }
    hand.pass(MS);
    assert_eq!(hand.over, None, "it was left before the answers");
    hand.request(101, "GET", true);
    hand.pass(10 * MS);
    assert_eq!(hand.goaways, [(19, 0)]);
    assert_eq!(hand.ended.len(), 10);
    // A client that does not leave is left.
    hand.pass(1_000 * MS);
    assert_eq!(hand.over, Some(Event::Ended(SLOT)));
    let counts = hand.close();
    assert_eq!((counts.requests, counts.replies), (16, 10));
    assert_eq!(counts.not_processed, 6);
    assert_eq!((counts.goaways, counts.abandoned), (1, 0));
}

#[test]
fn without_a_goaway_what_is_in_flight_is_lost() {
    let settings = settings(|server| {
        server.close_after = NonZeroU64::new(10);
        server.announces_close = false;
    });
    let mut hand = Hand::open(&settings, &WIDE);
    for number in 0..15 {
        hand.request(2 * number + 1, "GET", true);
    }
    hand.pass(10 * MS);
    assert_eq!((hand.ended.len(), hand.goaways.len()), (10, 0));
    assert_eq!(hand.over, Some(Event::Ended(SLOT)));
    let counts = hand.close();
    assert_eq!((counts.replies, counts.abandoned), (10, 5));
}

#[test]
fn faults_are_counted_as_they_are_seen() {
    type Count = fn(&SimCounts) -> u64;
    let cases: [(SimFaults, Count); 5] = [
        (
            SimFaults {
                stream_reset: 0.5,
                ..SimFaults::default()
            },
            |counts| counts.stream_resets.iter().sum(),
        ),
        (
            SimFaults {
                stream_cut: 0.5,
                ..SimFaults::default()
            },
            |counts| counts.stream_resets.iter().sum(),
        ),
        (
            SimFaults {
                stream_refused: 0.5,
                ..SimFaults::default()
            },
            |counts| counts.stream_refused,
        ),
        (
            SimFaults {
                stream_silent: 0.5,
                ..SimFaults::default()
            },
            |counts| counts.stream_silent,
        ),
        (
            SimFaults {
                malformed: 0.5,
                ..SimFaults::default()
            },
            |counts| counts.malformed,
        ),
    ];
    for (faults, count) in cases {
        let settings = settings(|server| {
            server.faults = faults;
            server.http2.streams_max = None;
            server.after_malformed = AfterMalformed::Continue;
        });
        let mut hand = Hand::open(&settings, &WIDE);
        for number in 0..300 {
            hand.request(2 * number + 1, "GET", true);
        }
        hand.pass(10 * MS);
        assert_eq!(hand.over, None, "{faults:?}");
        let mut resets = [0; RESET_CODES];
        let mut whole = 0;
        for heard in hand.heard.values() {
            if let Some(code) = heard.reset {
                resets[code as usize] += 1;
                let is_cut = faults.stream_cut > 0.0;
                assert_eq!(heard.statuses.len(), usize::from(is_cut), "{faults:?}");
                assert_eq!(heard.data, if is_cut { 50 } else { 0 }, "{faults:?}");
            } else {
                whole += u64::from(heard.has_ended && heard.statuses == ["200"]);
            }
        }
        let counts = hand.close();
        assert_eq!(whole, counts.replies, "{faults:?}");
        assert_eq!(counts.replies + count(&counts), 300, "{faults:?}");
        if faults.stream_refused > 0.0 {
            assert_eq!(resets[7], counts.stream_refused, "{faults:?}");
        } else {
            assert_eq!(resets, counts.stream_resets, "{faults:?}");
            let total: u64 = resets.iter().sum();
            let all = resets.iter().all(|&count| count > 0);
            assert_eq!(all, faults.stream_reset > 0.0);
            assert_eq!(total > 0, all || faults.stream_cut > 0.0);
        }
    }
}

#[test]
fn an_error_ends_the_connection_for_all() {
    let settings = settings(|server| server.faults.goaway = 1.0);
    let mut hand = Hand::open(&settings, &WIDE);
    for number in 0..5 {
        hand.request(2 * number + 1, "GET", true);
    }
    hand.pass(1_005 * MS);
    assert_eq!(hand.goaways, [(0, 2)]);
    assert_eq!(hand.over, Some(Event::Ended(SLOT)));
    let counts = hand.close();
    assert_eq!((counts.goaway_errors, counts.not_processed), (1, 4));
}

#[test]
fn answers_wait_for_windows() {
    let settings = settings(|server| server.body_bytes = 100_000);
    // (initial window of a stream, room given to the connection, to each stream, what then came)
    let cases = [
        (1_000, 0, 0, [1_000, 1_000]),
        (1_000, 0, 500, [1_500, 1_500]),
        (80_000, 0, 0, [65_535, 0]),
        (80_000, 20_000, 0, [80_000, 5_535]),
        (80_000, 1 << 30, 0, [80_000, 80_000]),
        (80_000, 1 << 30, 20_000, [100_000, 100_000]),
    ];
    for (window_bytes, to_connection, to_streams, expected) in cases {
        let own = [Setting::InitialWindowSize(window_bytes)];
        let mut hand = Hand::open(&settings, &own);
        for stream in [1, 3] {
            hand.request(stream, "GET", true);
        }
        hand.pass(5 * MS);
        for (stream, bytes) in [(0, to_connection), (1, to_streams), (3, to_streams)] {
            if bytes > 0 {
                frame::write_window_update(&mut hand.out, stream, bytes);
            }
        }
        hand.pass(5 * MS);
        assert_eq!([1, 3].map(|stream| hand.heard[&stream].data), expected);
        let is_whole = expected == [100_000; 2];
        assert_eq!(hand.ended.len(), if is_whole { 2 } else { 0 });
        let counts = hand.close();
        assert_eq!(counts.replies, 2);
        assert_eq!(counts.replies_delivered, if is_whole { 2 } else { 0 });
    }
}

#[test]
fn bodies_of_requests_get_their_room_back() {
    let settings = settings(|server| server.http2.window_bytes = 10_000);
    let mut hand = Hand::open(&settings, &WIDE);
    hand.request(1, "POST", false);
    hand.data(1, 10_000, false);
    hand.pass(MS);
    // The reference server gives the connection its room at once.
    let of_connection = (16 << 20) - 65_535;
    assert_eq!(hand.windows, [(0, of_connection), (1, 10_000)].into());
    hand.data(1, 9_000, true);
    hand.pass(5 * MS);
    assert_eq!(hand.windows, [(0, of_connection), (1, 10_000)].into());
    assert_eq!(hand.ended, [1]);
    let counts = hand.close();
    assert_eq!((counts.requests, counts.violations), (1, 0));
}

#[test]
fn settings_change_in_mid_run() {
    let settings = settings(|server| {
        server.http2.change = Some(SettingsChange {
            after: 3,
            streams_max: 2,
            table_bytes: 0,
        });
        server.http2.ping_every = NonZeroU64::new(2);
    });
    // (acknowledges, later streams, settings acknowledged)
    for (acknowledges, later, acknowledged) in [(true, 2, 2), (false, 10, 0)] {
        let mut hand = Hand::connected(&settings);
        hand.acknowledges = acknowledges;
        hand.out.extend_from_slice(PREFACE);
        frame::write_settings(&mut hand.out, &WIDE);
        for stream in [1, 3, 5] {
            hand.request(stream, "GET", true);
        }
        hand.pass(5 * MS);
        assert_eq!(hand.settings.len(), 2);
        assert!(hand.settings[1].contains(&Setting::MaxConcurrentStreams(2)));
        for number in 0..later {
            hand.request(7 + 2 * number, "GET", true);
        }
        hand.pass(5 * MS);
        let counts = hand.close();
        assert_eq!(counts.settings, 2);
        assert_eq!(counts.settings_acknowledged, acknowledged);
        assert!(counts.pings > 0);
        let expected = if acknowledges { counts.pings } else { 0 };
        assert_eq!(counts.pings_acknowledged, expected);
    }
}

#[test]
fn a_cancelled_request_is_not_answered() {
    let mut hand = Hand::open(&settings(|_| {}), &WIDE);
    hand.request(1, "POST", true);
    hand.request(3, "POST", true);
    hand.request(5, "POST", false);
    hand.request(7, "POST", true);
    hand.pass(MS / 2);
    for stream in [1, 5] {
        frame::write_rst_stream(&mut hand.out, stream, ErrorCode::Cancel);
    }
    hand.pass(5 * MS);
    assert_eq!(hand.ended, [3, 7]);
    // Too late.
    frame::write_rst_stream(&mut hand.out, 3, ErrorCode::Cancel);
    hand.data(5, 100, true);
    hand.pass(5 * MS);
    assert_eq!(hand.over, None);
    let counts = hand.close();
    assert_eq!((counts.requests_sent, counts.requests_lost), (4, 1));
    assert_eq!((counts.replies, counts.cancelled), (2, 1));
    assert_eq!(counts.violations, 0);
}

#[test]
fn broken_rules_are_counted() {
    let settings = settings(|server| {
        server.http2.streams_max = NonZeroU32::new(2);
        server.http2.window_bytes = 100;
    });
    type Act = fn(&mut Hand);
    let cases: [(&str, Act); 11] = [
        ("an even stream", |hand| hand.request(2, "GET", true)),
        ("a stream again", |hand| {
            hand.request(3, "GET", true);
            hand.request(1, "GET", true);
        }),
        ("too many streams", |hand| {
            (0..3).for_each(|number| hand.request(2 * number + 1, "GET", true));
        }),
        ("a stream's window", |hand| {
            hand.request(1, "POST", false);
            hand.data(1, 101, false);
        }),
        ("DATA behind the end", |hand| {
            hand.request(1, "POST", true);
            hand.data(1, 1, true);
        }),
        ("DATA before the head", |hand| hand.data(1, 1, true)),
        ("RST_STREAM before the head", |hand| {
            frame::write_rst_stream(&mut hand.out, 1, ErrorCode::Cancel);
        }),
        ("WINDOW_UPDATE before the head", |hand| {
            frame::write_window_update(&mut hand.out, 1, 1);
        }),
        ("a window beyond its maximum", |hand| {
            frame::write_window_update(&mut hand.out, 0, (1 << 31) - 1);
        }),
        ("a frame that is too long", |hand| {
            hand.request(1, "POST", false);
            hand.data(1, 16_385, true);
        }),
        ("a head that is no HPACK", |hand| {
            frame::write_head(&mut hand.out, 1, &[0x80], true, 16_384);
        }),
    ];
    for (rule, act) in cases {
        let mut hand = Hand::open(&settings, &WIDE);
        act(&mut hand);
        hand.pass(5 * MS);
        let resets = hand.heard.values().filter(|heard| heard.reset.is_some());
        assert_eq!(hand.goaways.len() + resets.count(), 1, "{rule}");
        assert_eq!(hand.close().violations, 1, "{rule}");
    }
    let mut hand = Hand::connected(&settings);
    hand.out.extend_from_slice(PREFACE);
    hand.request(1, "GET", true);
    hand.pass(5 * MS);
    assert_eq!(hand.close().violations, 1, "no SETTINGS");
}

#[test]
fn malformed_answers_and_lost_connections_leave_equal_counts() {
    let faults = [
        (0.2, 0.0, 0.0, 0.0),
        (0.0, 0.2, 0.0, 0.0),
        (0.0, 0.0, 0.2, 0.0),
        (0.0, 0.0, 0.0, 0.2),
    ];
    for malformed in [
        "no-status",
        "short-length",
        "idle-stream",
        "large-frame",
        "garbage",
    ] {
        for (silent, reset, closed, truncated) in faults {
            let settings = settings(|server| {
                server.http2.malformed = malformed;
                server.faults = SimFaults {
                    silent,
                    reset,
                    closed,
                    truncated,
                    malformed: 0.2,
                    ..SimFaults::default()
                };
            });
            let mut hand = Hand::open(&settings, &WIDE);
            // What is malformed is not looked at.
            for number in 0..20 {
                hand.request(2 * number + 1, "GET", true);
            }
            for _ in 0..20 {
                hand.sim
                    .wait(Some(hand.machine.now_ns(0) + MS))
                    .expect("a simulation");
                while hand.sim.next_event().is_some() {}
            }
            hand.close();
        }
    }
}

#[test]
fn a_handshake_may_be_cut_or_met_with_silence() {
    for (cut, silent) in [(1.0, 0.0), (0.0, 1.0)] {
        let settings = settings(|server| {
            server.faults.handshake_cut = cut;
            server.faults.handshake_silent = silent;
        });
        let mut hand = Hand::open(&settings, &WIDE);
        hand.pass(5 * MS);
        assert_eq!(hand.settings.len(), 0);
        assert_eq!(hand.over.is_some(), cut > 0.0);
        let counts = hand.close();
        assert_eq!(counts.handshakes_cut, cut as u64);
        assert_eq!(counts.handshakes_silent, silent as u64);
        assert_eq!(counts.connections_established, 0);
    }
}
