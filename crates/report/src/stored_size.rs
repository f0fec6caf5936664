//! How large a stored run can become, told before the load: what is written can be read back.

use thiserror::Error;

use brunt_record::name_buckets_max;

use crate::foreign;
use crate::read::STORED_BYTES_MAX;

/// What a run takes beside its workers and names.
const BASE_BYTES: u64 = 16 << 20;
/// What a worker takes whose series have their full length.
const WORKER_BYTES: u64 = 512 << 10;
/// What a name takes, in the run and in the summary, without its text and its buckets.
const NAME_BYTES: u64 = 1_500;
/// What a bucket of a histogram of a name takes.
const BUCKET_BYTES: u64 = 24;
/// Histograms of a name.
const HISTOGRAMS: u64 = 2;

/// Why a run would be stored and never read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StoredSizeError {
    /// The stored run would be too large.
    #[error(
        "the run of {names} names and {workers} workers may take {} MiB as a stored run, and at \
         most {} MiB are read back; split the list, store names without their queries (--redact), \
         or leave the stored run out (other formats have no limit)",
        .bytes_max >> 20, STORED_BYTES_MAX >> 20
    )]
    TooLarge {
        /// Names of the run.
        names: usize,
        /// Workers of the run.
        workers: u32,
        /// Bytes that the stored run may take.
        bytes_max: u64,
    },
}

/// Whether a run with these names can be stored and read back, whatever happens in it.
///
/// # Errors
///
/// See [`StoredSizeError`].
pub fn check_stored_size<'a>(
    names: impl ExactSizeIterator<Item = &'a str>,
    workers: u32,
) -> Result<(), StoredSizeError> {
    let count = names.len();
    let mut text_bytes = 0_u64;
    for name in names {
        // In the run, in its plan, and in the summary.
        text_bytes += 3 * foreign::json_bytes(name);
    }
    let buckets = HISTOGRAMS * name_buckets_max(count) as u64;
    let names_bytes = count as u64 * (NAME_BYTES + buckets * BUCKET_BYTES);
    let bytes_max = BASE_BYTES + u64::from(workers) * WORKER_BYTES + names_bytes + text_bytes;
    if bytes_max > STORED_BYTES_MAX {
        return Err(StoredSizeError::TooLarge {
            names: count,
            workers,
            bytes_max,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use brunt_record::{NameRecord, SparseHistogram};
    use serde::Serialize;
    use serde_json::json;

    use super::*;
    use crate::figures;
    use crate::object::Object;

    #[derive(Serialize)]
    struct Part {
        names: Vec<Object>,
    }

    /// The part of a stored run that belongs to one name.
    #[derive(Serialize)]
    struct OfName {
        names: Vec<NameRecord>,
        summary: Part,
    }

    #[test]
    fn a_name_takes_what_is_allowed_for_it() {
        const COUNT: u64 = 9_999_999_999;
        for (name, buckets) in [("/", 0), ("/a\u{85}\"b\u{1f600}", 1), ("/abc", 300)] {
            let mut histogram = SparseHistogram::default();
            for bucket in 0..buckets {
                histogram.record(1_000_000_000 + 10_000_000 * bucket);
            }
            let mut stored = serde_json::to_value(NameRecord::named(name)).expect("a record");
            stored["requests_sent"] = COUNT.into();
            for count in stored["population"]
                .as_object_mut()
                .expect("counts")
                .values_mut()
            {
                *count = COUNT.into();
            }
            stored["statuses"] = json!([
                {"status": 200, "count": COUNT},
                {"status": 503, "count": COUNT},
            ]);
            stored["failures"] = json!([{"kind": "connect_timed_out", "count": COUNT}]);
            stored["response"] = serde_json::to_value(&histogram).expect("a histogram");
            stored["unfinished"] = stored["response"].clone();
            let held = stored["response"]["buckets"]
                .as_array()
                .expect("buckets")
                .len() as u64;
            let record: NameRecord = serde_json::from_value(stored).expect("a record");
            let part = OfName {
                summary: Part {
                    names: vec![figures::name(&record)],
                },
                names: vec![record],
            };
            let mut bytes = Vec::new();
            foreign::write_json(&mut bytes, &part).expect("it is in memory");
            let text = 2 * foreign::json_bytes(name);
            let most = NAME_BYTES + text + HISTOGRAMS * held * BUCKET_BYTES;
            assert!(bytes.len() as u64 <= most, "{} of {most}", bytes.len());
        }
    }

    #[test]
    fn the_longest_list_of_usual_urls_can_be_stored() {
        let name = "x".repeat(37);
        let check = |name: &str, count| check_stored_size((0..count).map(|_| name), 64);
        assert_eq!(check(&name, 1 << 18), Ok(()));
        assert_eq!(check(&"x".repeat(287), 250_000), Ok(()));
        let long = check(&"x".repeat(1_000), 250_000).expect_err("too large");
        assert!(matches!(
            long,
            StoredSizeError::TooLarge { names: 250_000, .. }
        ));
        assert!(long.to_string().contains("--redact"), "{long}");
        assert_eq!(check("", 0), Ok(()));
    }
}
