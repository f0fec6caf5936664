//! What the server uses before the load begins.

/// What the server used before the load began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleUse {
    /// When the server was read first, and the CPU that it had used until then.
    first: Option<(u64, u64)>,
    cpus_used: Option<f64>,
}

impl IdleUse {
    /// First reading: CPU until `now_ns`, where known.
    pub(super) fn begin(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.first = cpu_ns.map(|cpu_ns| (now_ns, cpu_ns));
    }

    /// Second reading.
    pub(super) fn end(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.cpus_used = self
            .first
            .zip(cpu_ns)
            .and_then(|((then_ns, before_ns), ns)| {
                let interval_ns = now_ns.checked_sub(then_ns).filter(|&ns| ns > 0)?;
                Some(ns.saturating_sub(before_ns) as f64 / interval_ns as f64)
            });
    }

    /// Nothing is known of it: load began before the second reading ended.
    pub(super) fn discard(&mut self) {
        *self = Self::default();
    }

    /// CPUs used between the two; absent without both.
    pub(super) fn cpus_used(&self) -> Option<f64> {
        self.cpus_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_use_needs_two_readings_apart() {
        for (first, second, cpus_used) in [
            ((100, Some(50)), (200, Some(60)), Some(0.1)),
            ((100, Some(50)), (200, Some(250)), Some(2.0)),
            ((100, Some(50)), (200, Some(40)), Some(0.0)),
            ((100, Some(50)), (100, Some(60)), None),
            ((100, None), (200, Some(60)), None),
            ((100, Some(50)), (200, None), None),
        ] {
            let mut idle = IdleUse::default();
            idle.begin(first.0, first.1);
            idle.end(second.0, second.1);
            assert_eq!(idle.cpus_used(), cpus_used, "{first:?} {second:?}");
            idle.discard();
            assert_eq!(idle.cpus_used(), None);
        }
    }
}
