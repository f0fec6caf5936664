//! The verdict, as stored.

use brunt_judge::Verdict;

/// The name of `verdict` in data, as in the stored form.
pub(crate) fn data_name(verdict: Verdict) -> String {
    verdict.name().to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_one_name_in_all_data() {
        for verdict in [
            Verdict::Invalid,
            Verdict::NoSuccess,
            Verdict::ServerFailed,
            Verdict::Disturbed,
            Verdict::Inconclusive,
            Verdict::ClientLimited,
            Verdict::NetworkLimited,
            Verdict::RateLimited,
            Verdict::ThinkTime,
            Verdict::ServerLimited,
            Verdict::ConcurrencyLimited,
            Verdict::SharedHost,
            Verdict::SharedServer,
        ] {
            let stored = serde_json::to_value(verdict).unwrap();
            assert_eq!(stored, data_name(verdict));
        }
    }
}
