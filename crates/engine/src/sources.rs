//! Local addresses of connections: those that were asked for, used in turn; or towards loopback,
//! one after the other where the ports of one would run out.

use std::net::SocketAddr;

/// The addresses of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    addresses: Vec<SocketAddr>,
    /// How connections spread over the addresses; absent: each connection takes the next address.
    spread: Option<Spread>,
}

/// What one address can carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// Ports that connections may comfortably have at once.
    pub(crate) ports: u64,
    /// How long a closed connection keeps its port, nanoseconds.
    pub(crate) hold_ns: u64,
}

/// The addresses as one worker takes them.
#[derive(Debug)]
pub(crate) struct Turns {
    sources: Sources,
    /// The address in use; of addresses used in turn, the connections so far.
    index: usize,
    /// Most addresses in use so far.
    used: usize,
    /// Connections that an address gets before the next one may be taken.
    batch: u64,
    /// Connections of the batch that were opened.
    opened: u64,
    since_ns: u64,
    /// Where a batch takes longer, its ports are free again.
    hold_ns: u64,
}

impl Sources {
    /// Addresses that take turns; none leaves the choice to the kernel.
    pub(crate) fn in_turn(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            spread: None,
        }
    }

    /// Addresses, the first of which is the kernel's own choice, and the others for when its ports
    /// would run out.
    pub(crate) fn spread(addresses: Vec<SocketAddr>, spread: Spread) -> Self {
        Self {
            addresses,
            spread: Some(spread),
        }
    }

    /// How many there are, the kernel's choice included.
    pub(crate) fn len(&self) -> usize {
        self.addresses.len().max(1)
    }

    /// The addresses that were in use, `used` of those that spread; empty where the kernel alone
    /// chose.
    pub(crate) fn used(&self, used: usize) -> &[SocketAddr] {
        match self.spread {
            None => &self.addresses,
            Some(_) if used <= 1 => &[],
            Some(_) => &self.addresses[..used.min(self.addresses.len())],
        }
    }

    /// Whether brunt chose them.
    pub(crate) fn is_spread(&self) -> bool {
        self.spread.is_some()
    }

    /// The addresses as one of `workers` workers takes them, which holds `connections`.
    pub(crate) fn turns(self, worker: u32, workers: u32, connections: u32) -> Turns {
        let (ports, hold_ns) = match self.spread {
            None => (u64::MAX, 0),
            Some(spread) => ((spread.ports / u64::from(workers)).max(1), spread.hold_ns),
        };
        // Connections that are held have their ports beside those that were closed recently.
        let (batch, hold_ns) = match ports.checked_sub(connections.into()) {
            None | Some(0) => (ports, u64::MAX),
            Some(batch) => (batch, hold_ns),
        };
        Turns {
            index: if self.spread.is_some() {
                0
            } else {
                worker as usize
            },
            sources: self,
            used: 1,
            batch,
            opened: 0,
            since_ns: 0,
            hold_ns,
        }
    }
}

impl Turns {
    /// The address of a connection that is opened now; absent leaves it to the kernel.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<SocketAddr> {
        let count = self.sources.addresses.len();
        if count == 0 {
            return None;
        }
        if self.sources.spread.is_none() {
            let address = self.sources.addresses[self.index % count];
            self.index = self.index.wrapping_add(1);
            return Some(address);
        }
        if self.opened == self.batch {
            if now_ns.saturating_sub(self.since_ns) < self.hold_ns {
                self.index = (self.index + 1) % count;
                self.used = self.used.max(self.index + 1);
            }
            self.opened = 0;
        }
        if self.opened == 0 {
            self.since_ns = now_ns;
        }
        self.opened += 1;
        (self.index > 0).then(|| self.sources.addresses[self.index])
    }

    /// How many of the addresses were used.
    pub(crate) fn used(&self) -> usize {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use super::*;

    fn addresses(count: u8) -> Vec<SocketAddr> {
        (1..=count)
            .map(|host| SocketAddr::from(([127, 0, 0, host], 0)))
            .collect()
    }

    #[test]
    fn addresses_that_were_asked_for_take_turns() {
        assert_eq!(Sources::default().turns(0, 1, 5).next(0), None);
        let mut turns = Sources::in_turn(addresses(3)).turns(1, 2, 5);
        let taken: Vec<_> = (0..4).filter_map(|now_ns| turns.next(now_ns)).collect();
        let all = addresses(3);
        assert_eq!(taken, [all[1], all[2], all[0], all[1]]);
        assert_eq!(Sources::in_turn(addresses(3)).used(1), all);
    }

    #[test]
    fn further_addresses_are_for_ports_that_would_run_out() {
        const HOLD_NS: u64 = 1_000;
        let spread = Spread {
            ports: 100,
            hold_ns: HOLD_NS,
        };
        let sources = Sources::spread(addresses(16), spread);
        // Connections held, time from one to the next, how many are opened, addresses used.
        for (held, gap_ns, opened, used) in [
            (10, 1, 90, 1),
            (10, 1, 91, 2),
            // Ninety take the time in which their ports are free again.
            (10, 12, 10_000, 1),
            (10, 10, 10_000, 16),
            // All are held.
            (100, 1_000_000, 100, 1),
            (150, 1_000_000, 150, 2),
            (450, 1_000_000, 450, 5),
        ] {
            let mut turns = sources.clone().turns(0, 1, held);
            let mut taken = BTreeSet::new();
            let mut busy = VecDeque::new();
            for connection in 0..opened {
                let now_ns = connection * gap_ns;
                let address = turns.next(now_ns);
                taken.insert(address);
                busy.push_back((now_ns, address));
                while busy.front().is_some_and(|&(since_ns, _)| {
                    busy.len() > held as usize && now_ns - since_ns >= HOLD_NS
                }) {
                    busy.pop_front();
                }
                let same = busy.iter().filter(|&&(_, other)| other == address);
                assert!(
                    gap_ns * 100 < HOLD_NS || same.count() <= 100,
                    "{held} {gap_ns}"
                );
            }
            assert_eq!((turns.used(), taken.len()), (used, used), "{held} {gap_ns}");
            let named = sources.used(turns.used()).len();
            assert_eq!(named, if used == 1 { 0 } else { used }, "{held} {gap_ns}");
        }
    }
}
