//! Numbers that one thread adds to and others read, and how they add up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread adds to and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds. Only the worker that owns the count may call it, so no locked instruction is needed.
    pub(crate) fn add(&self, count: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(count),
            Ordering::Release,
        );
    }

    /// Takes back what was added before; same rule.
    pub(crate) fn subtract(&self, count: u64) {
        self.add(count.wrapping_neg());
    }

    /// Raises it to `value` if it is below; same rule.
    pub(crate) fn raise(&self, value: u64) {
        if value > self.0.load(Ordering::Relaxed) {
            self.0.store(value, Ordering::Release);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What the loop of a worker counts, whatever its service.
#[derive(Debug, Default)]
pub(crate) struct LinkCounters {
    pub(crate) accepted: Count,
    pub(crate) closed: Count,
    pub(crate) accepts_failed: Count,
    pub(crate) handshakes_failed: Count,
    pub(crate) timed_out: Count,
    pub(crate) overflowed: Count,
    pub(crate) bytes_received: Count,
}

/// How late answers were sent that had to wait for an instant.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    pub(crate) answers: Count,
    pub(crate) ns_sum: Count,
    pub(crate) ns_max: Count,
}

impl Lateness {
    /// Counts so many answers that are sent this much after their instant.
    pub(crate) fn add(&self, answers: u64, late_ns: u64) {
        self.ns_sum.add(late_ns.saturating_mul(answers));
        self.ns_max.raise(late_ns);
        self.answers.add(answers);
    }
}

/// Adds `counts` to `totals`, each by its name, those that are not 0.
pub(crate) fn add_named(totals: &mut BTreeMap<String, u64>, names: &[&str], counts: &[Count]) {
    for (name, count) in names.iter().zip(counts) {
        match count.get() {
            0 => {}
            count => *totals.entry((*name).to_owned()).or_default() += count,
        }
    }
}

/// Makes two structs: the counts of one worker, and their totals over all workers. Each of `sums`
/// is a field of both. `totals` and `worker` are the fields that only one of them has.
macro_rules! counters {
    (
        $(#[$about:meta])*
        $Totals:ident of $Worker:ident;
        sums { $($(#[$about_sum:meta])* $sum:ident,)* }
        totals { $($(#[$about_total:meta])* $total:ident: $Total:ty,)* }
        worker { $($count:ident: $Count:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $Totals {
            /// Connections accepted.
            pub connections_accepted: u64,
            /// Accepted connections that are not yet closed.
            pub connections_live: u64,
            /// Connections that could not be accepted, mostly for want of descriptors.
            pub accepts_failed: u64,
            /// TLS handshakes that failed; their connections are not among those accepted.
            pub handshakes_failed: u64,
            /// Connections closed because neither their client nor an answer to it got on for the
            /// idle time-out.
            pub connections_timed_out: u64,
            /// Connections closed because too much of their input was waiting, or of their output,
            /// or a message was too long to be kept.
            pub connections_overflowed: u64,
            /// Bytes read, those included that were thrown away in the kernel; of TLS the plain
            /// text, of HTTP/3 those of requests' streams.
            pub bytes_received: u64,
            /// Bytes given to the kernel for sending; of TLS the plain text, of HTTP/3 those of
            /// requests' streams. What a connection was given last may not have been taken when it
            /// was closed.
            pub bytes_sent: u64,
            $($(#[$about_sum])* pub $sum: u64,)*
            $($(#[$about_total])* pub $total: $Total,)*
            /// Answers that had to wait for an instant. How late they were sent follows: from the
            /// instant at which an answer was due to the clock reading just before it was sent.
            pub replies_delayed: u64,
            /// Mean lateness of these answers, nanoseconds, rounded down; absent without any.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub lateness_ns_mean: Option<u64>,
            /// Greatest lateness of these answers, nanoseconds; absent without any.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub lateness_ns_max: Option<u64>,
        }

        /// One worker's counts, on cache lines of their own.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct $Worker {
            pub(crate) links: $crate::count::LinkCounters,
            pub(crate) lateness: $crate::count::Lateness,
            pub(crate) bytes_sent: $crate::count::Count,
            $(pub(crate) $sum: $crate::count::Count,)*
            $($count: $Count,)*
        }

        impl $Totals {
            /// The sums over these workers. What else there is in the totals is left empty.
            fn sums(workers: &[Arc<$Worker>]) -> Self {
                let sum = |count: fn(&$Worker) -> &$crate::count::Count| -> u64 {
                    workers.iter().map(|worker| count(worker).get()).sum()
                };
                // Effects before their causes, here as in the list: what comes in between never
                // makes a difference negative.
                let closed = sum(|worker| &worker.links.closed);
                let replies_delayed = sum(|worker| &worker.lateness.answers);
                let mut totals = Self {
                    $($sum: sum(|worker| &worker.$sum),)*
                    connections_accepted: sum(|worker| &worker.links.accepted),
                    accepts_failed: sum(|worker| &worker.links.accepts_failed),
                    handshakes_failed: sum(|worker| &worker.links.handshakes_failed),
                    connections_timed_out: sum(|worker| &worker.links.timed_out),
                    connections_overflowed: sum(|worker| &worker.links.overflowed),
                    bytes_received: sum(|worker| &worker.links.bytes_received),
                    bytes_sent: sum(|worker| &worker.bytes_sent),
                    replies_delayed,
                    ..Self::default()
                };
                totals.connections_live = totals.connections_accepted.saturating_sub(closed);
                if replies_delayed > 0 {
                    let maxima = workers.iter().map(|worker| worker.lateness.ns_max.get());
                    totals.lateness_ns_max = maxima.max();
                    let ns_sum = sum(|worker| &worker.lateness.ns_sum);
                    totals.lateness_ns_mean = Some(ns_sum / replies_delayed);
                }
                totals
            }
        }
    };
}
pub(crate) use counters;
