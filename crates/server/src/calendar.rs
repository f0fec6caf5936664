//! By which connections are found that have been idle for too long, without looking at all of them
//! in each turn.

/// Parts of the idle time-out that have a page each.
const IDLE_PARTS: u64 = 8;

/// A calendar whose pages are parts of the idle time-out. A connection has the number of the page
/// on which it got on last.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    timeout_ns: Option<u64>,
    page: u16,
    turns_ns: u64,
}

impl Calendar {
    /// The calendar of a time-out of so many nanoseconds; absent: none.
    pub(crate) fn new(timeout_ns: Option<u64>) -> Self {
        Self {
            timeout_ns,
            ..Self::default()
        }
    }

    /// The page of now.
    pub(crate) fn page(&self) -> u16 {
        self.page
    }

    /// Whether a page is turned at this instant: then idle connections are to be looked for.
    pub(crate) fn turns(&mut self, now_ns: u64) -> bool {
        let Some(timeout_ns) = self.timeout_ns else {
            return false;
        };
        if now_ns < self.turns_ns {
            return false;
        }
        self.turns_ns = now_ns.saturating_add((timeout_ns / IDLE_PARTS).max(1));
        self.page = self.page.wrapping_add(1);
        true
    }

    /// Whether a connection that got on last on `page` has been idle for too long.
    pub(crate) fn is_idle(&self, page: u16) -> bool {
        u64::from(self.page.wrapping_sub(page)) > IDLE_PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_after_the_time_out() {
        let mut calendar = Calendar::new(Some(800));
        assert!(calendar.turns(0));
        let page = calendar.page();
        for now_ns in (100..=800).step_by(100) {
            assert!(!calendar.turns(now_ns - 1));
            assert!(calendar.turns(now_ns));
            assert!(!calendar.is_idle(page));
        }
        assert!(calendar.turns(900));
        assert!(calendar.is_idle(page));
        assert!(!Calendar::new(None).turns(u64::MAX));
    }
}
