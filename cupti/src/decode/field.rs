//! Reading one field of a record.

use cupti_sys::bindings as c;

/// A pointer to a text in the memory of the recorded process, as it stands in a record. Its text is found through the
/// strings stored with the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringPtr(pub u64);

impl StringPtr {
    /// Whether the record has no text here.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// What an object kind of [`super::Name`], [`super::Marker`] or [`super::Overhead`] refers to
/// (`CUpti_ActivityObjectKindId`): a union whose use depends on the object kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectId([u32; 3]);

impl ObjectId {
    /// The process, of a process or a thread.
    pub fn process_id(self) -> u32 {
        self.0[0]
    }

    /// The thread, of a thread.
    pub fn thread_id(self) -> u32 {
        self.0[1]
    }

    /// The device, of a device, a context or a stream.
    pub fn device_id(self) -> u32 {
        self.0[0]
    }

    /// The context, of a context or a stream.
    pub fn context_id(self) -> u32 {
        self.0[1]
    }

    /// The stream, of a stream.
    pub fn stream_id(self) -> u32 {
        self.0[2]
    }
}

/// The interface an API call belongs to; a callback id means something only within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiDomain {
    /// The CUDA runtime (`CUPTI_ACTIVITY_KIND_RUNTIME`).
    #[default]
    Runtime,
    /// The CUDA driver (`CUPTI_ACTIVITY_KIND_DRIVER`).
    Driver,
    /// Launches inside the driver that no API call made (`CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API`).
    InternalLaunch,
}

/// A value that can be read from a record at an offset.
pub(super) trait Field {
    /// Bytes it takes in a record.
    #[cfg(test)]
    const LENGTH: usize;

    /// The value at `at`; where the record is too short, the default (`None` for an optional one).
    fn read(record: &[u8], at: usize) -> Self;
}

fn bytes<const N: usize>(record: &[u8], at: usize) -> Option<[u8; N]> {
    record.get(at..)?.first_chunk().copied()
}

macro_rules! numbers {
    ($($type:ident)*) => {
        $(
            impl Field for $type {
                #[cfg(test)]
                const LENGTH: usize = size_of::<$type>();

                #[inline(always)]
                fn read(record: &[u8], at: usize) -> Self {
                    bytes(record, at).map_or(0, Self::from_le_bytes)
                }
            }
            impl Field for Option<$type> {
                #[cfg(test)]
                const LENGTH: usize = size_of::<$type>();

                #[inline(always)]
                fn read(record: &[u8], at: usize) -> Self {
                    bytes(record, at).map($type::from_le_bytes)
                }
            }
        )*
    };
}
numbers!(u8 u16 u32 u64 i32 i64);

impl Field for StringPtr {
    #[cfg(test)]
    const LENGTH: usize = 8;

    #[inline(always)]
    fn read(record: &[u8], at: usize) -> Self {
        Self(u64::read(record, at))
    }
}

impl Field for Option<StringPtr> {
    #[cfg(test)]
    const LENGTH: usize = 8;

    #[inline(always)]
    fn read(record: &[u8], at: usize) -> Self {
        Option::<u64>::read(record, at).map(StringPtr)
    }
}

impl Field for [u8; 16] {
    #[cfg(test)]
    const LENGTH: usize = 16;

    #[inline(always)]
    fn read(record: &[u8], at: usize) -> Self {
        bytes(record, at).unwrap_or_default()
    }
}

impl Field for ObjectId {
    #[cfg(test)]
    const LENGTH: usize = 12;

    #[inline(always)]
    fn read(record: &[u8], at: usize) -> Self {
        Self([u32::read(record, at), u32::read(record, at + 4), u32::read(record, at + 8)])
    }
}

impl Field for ApiDomain {
    #[cfg(test)]
    const LENGTH: usize = 4;

    #[inline(always)]
    fn read(record: &[u8], at: usize) -> Self {
        match u32::read(record, at) {
            c::CUPTI_ACTIVITY_KIND_DRIVER => Self::Driver,
            c::CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API => Self::InternalLaunch,
            _ => Self::Runtime,
        }
    }
}
