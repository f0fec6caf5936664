//! Adding up what workers, agents and parts of a run counted, field by field.

/// What another of its kind is added to.
pub(crate) trait Merge {
    /// Adds `other`. A count stops at the largest number that it can hold.
    fn merge(&mut self, other: &Self);
}

impl Merge for u32 {
    fn merge(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

impl Merge for u64 {
    fn merge(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

/// Of lists whose places are alike, place by place.
impl<T: Merge> Merge for [T] {
    fn merge(&mut self, other: &Self) {
        for (own, others) in self.iter_mut().zip(other) {
            own.merge(others);
        }
    }
}

/// The sum of counts, or the largest number that it can hold.
pub(crate) fn sum(counts: &[u64]) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

/// Whether nothing was counted, so that the count is not stored.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Of a count that not everybody has, the sum of those that are there.
impl<T: Merge + Default> Merge for Option<T> {
    fn merge(&mut self, other: &Self) {
        if let Some(others) = other {
            self.get_or_insert_default().merge(others);
        }
    }
}

/// Merges the fields of one value into those of another of its kind: counts are added, other fields
/// have a `merge` of their own.
macro_rules! merge_fields {
    ($own:ident, $other:ident: $($field:ident)+) => {
        $($own.$field.merge(&$other.$field);)+
    };
}

/// Gives a type its `merge`, field by field: all are named, so that none is forgotten.
macro_rules! merges {
    ($type:ident: $($field:ident)+) => {
        impl $type {
            /// Adds what `other` counted.
            pub fn merge(&mut self, other: &Self) {
                let Self { $($field),+ } = other;
                $(self.$field.merge($field);)+
            }
        }
    };
}

/// Gives a type of counters its `since`, field by field.
macro_rules! differences {
    ($type:ident: $($field:ident)+) => {
        impl $type {
            /// What was counted since it stood at `earlier`.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                let Self { $($field),+ } = *self;
                Self { $($field: $field.saturating_sub(earlier.$field)),+ }
            }
        }
    };
}

pub(crate) use {differences, merge_fields, merges};
