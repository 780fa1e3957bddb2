//! How a record is laid out: what its table in [`records`](super::records) becomes.

/// Defines record structs and how to read them:
/// `Name = (C struct, bytes of the oldest layout) { field: type = offset CFieldName [since record size]; … }`.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $name:ident = ($c:ident, $least:literal) {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $at:literal $c_field:ident $(since $since:literal)?;)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl $name {
                /// Reads a record, unless it is shorter than any CUPTI since 12.0 writes it.
                #[inline(always)]
                pub(super) fn decode(record: &[u8]) -> Option<Self> {
                    if record.len() < $least {
                        return None;
                    }
                    Some(Self {
                        $($field: {
                            // Bytes that were padding before the record had this size are not read.
                            $(let record = if record.len() < $since { &[][..] } else { record };)?
                            Field::read(record, $at)
                        },)*
                    })
                }
            }
        )*

        /// Where each field is read, for comparison with the bindings.
        #[cfg(all(test, target_pointer_width = "64"))]
        pub(super) fn places() -> Vec<$crate::decode::layout::Place> {
            fn length<C, T>(_: fn(&C) -> T) -> usize {
                size_of::<T>()
            }
            use cupti_sys::bindings as c;
            vec![$($($crate::decode::layout::Place {
                record: stringify!($name),
                field: stringify!($field),
                text: stringify!($type).contains("StringPtr"),
                optional: stringify!($type).starts_with("Option"),
                at: $at,
                length: <$type as Field>::LENGTH,
                least: $least,
                c_at: std::mem::offset_of!(c::$c, $c_field),
                c_length: length::<c::$c, _>(|record| record.$c_field),
                c_size: size_of::<c::$c>(),
            }),*),*]
        }
    };
}

pub(super) use records;

/// Where a field is read, and where the bindings have it.
#[cfg(all(test, target_pointer_width = "64"))]
pub(super) struct Place {
    pub(super) record: &'static str,
    pub(super) field: &'static str,
    pub(super) text: bool,
    pub(super) optional: bool,
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) least: usize,
    pub(super) c_at: usize,
    pub(super) c_length: usize,
    pub(super) c_size: usize,
}
