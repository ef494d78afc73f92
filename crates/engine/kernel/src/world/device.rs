//! The devices that programs use without being told to.

/// A character device that the world has itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Device {
    Null,
    Zero,
    Full,
    Random,
    /// Anything else: there, but it cannot be opened.
    Other,
}

impl Device {
    /// The device that a real path stands for.
    pub(super) fn at(path: &[u8]) -> Device {
        match path {
            b"/dev/null" => Device::Null,
            b"/dev/zero" => Device::Zero,
            b"/dev/full" => Device::Full,
            b"/dev/random" | b"/dev/urandom" => Device::Random,
            _ => Device::Other,
        }
    }
}
