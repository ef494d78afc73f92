//! Addresses of sockets, and their format in memory.

use crate::world::guest::GuestMemory;

/// Longest path of a unix address.
const UNIX_MAX: usize = 108;
const LENGTH_MAX: u64 = 128;

/// Where a socket can be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Address {
    Unnamed,
    Path(Vec<u8>),
    Abstract(Vec<u8>),
    V4 { host: [u8; 4], port: u16 },
    V6 { host: [u8; 16], port: u16 },
}

impl Address {
    pub(super) fn unnamed(domain: i32) -> Address {
        match domain {
            libc::AF_INET => Address::V4 {
                host: [0; 4],
                port: 0,
            },
            libc::AF_INET6 => Address::V6 {
                host: [0; 16],
                port: 0,
            },
            _ => Address::Unnamed,
        }
    }

    pub(super) fn family(&self) -> i32 {
        match self {
            Address::V4 { .. } => libc::AF_INET,
            Address::V6 { .. } => libc::AF_INET6,
            _ => libc::AF_UNIX,
        }
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Address::V4 { port, .. } | Address::V6 { port, .. } => *port,
            _ => 0,
        }
    }

    pub(super) fn with_port(&self, new: u16) -> Address {
        let mut address = self.clone();
        if let Address::V4 { port, .. } | Address::V6 { port, .. } = &mut address {
            *port = new;
        }
        address
    }

    /// The same address, as IPv4 where it is one.
    pub(super) fn plain(&self) -> Address {
        match self {
            Address::V6 { host, port }
                if host[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255] =>
            {
                Address::V4 {
                    host: [host[12], host[13], host[14], host[15]],
                    port: *port,
                }
            }
            other => other.clone(),
        }
    }

    /// Any address of this host.
    pub(super) fn is_unspecified(&self) -> bool {
        match self.plain() {
            Address::V4 { host, .. } => host == [0; 4],
            Address::V6 { host, .. } => host == [0; 16],
            _ => false,
        }
    }

    pub(super) fn is_loopback(&self) -> bool {
        match self.plain() {
            Address::V4 { host, .. } => host[0] == 127,
            Address::V6 { host, .. } => host[..15] == [0; 15] && host[15] == 1,
            _ => false,
        }
    }

    /// The address that one end of a connection has if it was not given one.
    pub(super) fn loopback(domain: i32, port: u16) -> Address {
        match domain {
            libc::AF_INET6 => {
                let mut host = [0; 16];
                host[15] = 1;
                Address::V6 { host, port }
            }
            _ => Address::V4 {
                host: [127, 0, 0, 1],
                port,
            },
        }
    }

    /// Reads a `sockaddr`.
    pub(super) fn read(memory: &dyn GuestMemory, at: u64, len: u64) -> Result<Address, i32> {
        if !(2..=LENGTH_MAX).contains(&len) {
            return Err(libc::EINVAL);
        }
        let bytes = memory.read_bytes(at, len)?;
        let family = i32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        match family {
            libc::AF_UNIX => Ok(unix_address(&bytes[2..])),
            libc::AF_INET if len >= 16 => Ok(Address::V4 {
                host: [bytes[4], bytes[5], bytes[6], bytes[7]],
                port: u16::from_be_bytes([bytes[2], bytes[3]]),
            }),
            libc::AF_INET6 if len >= 24 => {
                let mut host = [0; 16];
                host.copy_from_slice(&bytes[8..24]);
                Ok(Address::V6 {
                    host,
                    port: u16::from_be_bytes([bytes[2], bytes[3]]),
                })
            }
            libc::AF_INET | libc::AF_INET6 => Err(libc::EINVAL),
            _ => Err(libc::EAFNOSUPPORT),
        }
    }

    /// The `sockaddr`.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = (self.family() as u16).to_le_bytes().to_vec();
        match self {
            Address::Unnamed => {}
            Address::Path(path) => {
                bytes.extend_from_slice(path);
                bytes.push(0);
            }
            Address::Abstract(name) => {
                bytes.push(0);
                bytes.extend_from_slice(name);
            }
            Address::V4 { host, port } => {
                bytes.extend_from_slice(&port.to_be_bytes());
                bytes.extend_from_slice(host);
                bytes.extend_from_slice(&[0; 8]);
            }
            Address::V6 { host, port } => {
                bytes.extend_from_slice(&port.to_be_bytes());
                bytes.extend_from_slice(&[0; 4]);
                bytes.extend_from_slice(host);
                bytes.extend_from_slice(&[0; 4]);
            }
        }
        bytes
    }

    /// Writes the `sockaddr` as far as it fits, and its full length.
    pub(super) fn write(
        &self,
        memory: &mut dyn GuestMemory,
        at: u64,
        len_at: u64,
    ) -> Result<(), i32> {
        write_address(&self.bytes(), memory, at, len_at)
    }
}

/// Writes a `sockaddr` as far as it fits, and its full length.
pub(super) fn write_address(
    bytes: &[u8],
    memory: &mut dyn GuestMemory,
    at: u64,
    len_at: u64,
) -> Result<(), i32> {
    if at == 0 || len_at == 0 {
        return Ok(());
    }
    let room = memory.read_u32(len_at)? as usize;
    memory.write(at, &bytes[..bytes.len().min(room)])?;
    memory.write_u32(len_at, bytes.len() as u32)
}

fn unix_address(bytes: &[u8]) -> Address {
    let bytes = &bytes[..bytes.len().min(UNIX_MAX)];
    match bytes.first() {
        None => Address::Unnamed,
        Some(0) => Address::Abstract(bytes[1..].to_vec()),
        Some(_) => {
            let end = bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len());
            Address::Path(bytes[..end].to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_address_in_ipv6_clothes_is_loopback() {
        let mut host = [0; 16];
        host[10..].copy_from_slice(&[255, 255, 127, 0, 0, 1]);
        let mapped = Address::V6 { host, port: 7 };
        assert!(mapped.is_loopback() && !mapped.is_unspecified());
        assert_eq!(mapped.plain(), Address::loopback(libc::AF_INET, 7));
        assert_eq!(mapped.bytes().len(), 28);
    }
}
