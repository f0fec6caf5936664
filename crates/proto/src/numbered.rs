//! What protocols number: types of frames and streams, settings, error codes.

/// Declares an enum: each variant with its number on the wire, and the name that people are shown
/// where it has one. Every other number is `Other`, with what `else` says of it.
macro_rules! numbered {
    ($(#[$meta:meta])* enum $Type:ident($number:ty), $other_words:literal {
        $($(#[doc = $doc:literal])+ $variant:ident = $value:literal $name:literal,)+
        else $other_doc:literal,
    }) => {
        numbered! {
            $(#[$meta])* enum $Type($number) {
                $($(#[doc = $doc])+ $variant = $value,)+
                else $other_doc,
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($name),)+
                    Self::Other(number) => write!(f, "{} {number:#x}", $other_words),
                }
            }
        }
    };
    ($(#[$meta:meta])* enum $Type:ident($number:ty) {
        $($(#[doc = $doc:literal])+ $variant:ident = $value:literal,)+
        else $other_doc:literal,
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Type {
            $($(#[doc = $doc])+ $variant,)+
            #[doc = $other_doc]
            Other($number),
        }

        impl $Type {
            /// The one with this number.
            #[inline]
            pub const fn of(number: $number) -> Self {
                match number {
                    $($value => Self::$variant,)+
                    _ => Self::Other(number),
                }
            }

            /// Its number on the wire.
            #[inline]
            pub const fn number(self) -> $number {
                match self {
                    $(Self::$variant => $value,)+
                    Self::Other(number) => number,
                }
            }
        }
    };
}
