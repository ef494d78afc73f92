//! The guest's memory as the world sees it: a place to read arguments from and to write answers to.
//!
//! A trait, so that calls can be tried without a guest (tests) and followed without writing (a replay has the
//! recorded bytes already in place).

use crate::time::SECOND_NS;
use verdict_cpu::layout::PAGE;

/// Most buffers that one call may name.
const VECTORS_MAX: u64 = 1024;
/// Most bytes that one call moves, as Linux has it.
const TRANSFER_MAX: u64 = 0x7fff_f000;

/// Bytes of the guest. Errors are `errno` values.
pub trait GuestMemory {
    /// Reads; `EFAULT` where the guest could not.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), i32>;

    /// Writes; `EFAULT` where the guest could not.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), i32>;

    /// Writes where the guest itself may only read.
    fn write_through(&mut self, address: u64, bytes: &[u8]) -> Result<(), i32>;

    /// Reads a string that ends with NUL, of at most a path's length.
    fn read_string(&self, address: u64) -> Result<Vec<u8>, i32>;

    /// Reads so many bytes.
    fn read_bytes(&self, address: u64, len: u64) -> Result<Vec<u8>, i32> {
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| libc::EFAULT)?];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a plain value.
    fn read_u64(&self, address: u64) -> Result<u64, i32> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a plain value.
    fn read_u32(&self, address: u64) -> Result<u32, i32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Writes a plain value.
    fn write_u64(&mut self, address: u64, value: u64) -> Result<(), i32> {
        self.write(address, &value.to_le_bytes())
    }

    /// Writes a plain value.
    fn write_u32(&mut self, address: u64, value: u32) -> Result<(), i32> {
        self.write(address, &value.to_le_bytes())
    }

    /// A `timespec`, in nanoseconds.
    fn read_timespec(&self, at: u64) -> Result<u64, i32> {
        let (seconds, nanos) = (self.read_u64(at)? as i64, self.read_u64(at + 8)? as i64);
        if seconds < 0 || !(0..SECOND_NS as i64).contains(&nanos) {
            return Err(libc::EINVAL);
        }
        Ok((seconds as u64)
            .saturating_mul(SECOND_NS)
            .saturating_add(nanos as u64))
    }

    /// Writes a `timespec`.
    fn write_timespec(&mut self, at: u64, ns: u64) -> Result<(), i32> {
        self.write_u64(at, ns / SECOND_NS)?;
        self.write_u64(at + 8, ns % SECOND_NS)
    }

    /// The buffers that an array of `iovec` names, cut to what one call may move.
    fn read_vectors(&self, at: u64, count: u64) -> Result<Vec<Buffer>, i32> {
        if count > VECTORS_MAX {
            return Err(libc::EINVAL);
        }
        let mut left = TRANSFER_MAX;
        let mut buffers = Vec::with_capacity(count as usize);
        for index in 0..count {
            let address = self.read_u64(at + 16 * index)?;
            let len = self.read_u64(at + 16 * index + 8)?;
            if len > i64::MAX as u64 {
                return Err(libc::EINVAL);
            }
            let len = len.min(left);
            left -= len;
            buffers.push(Buffer { address, len });
        }
        Ok(buffers)
    }

    /// All bytes of the buffers, in order.
    fn gather(&self, buffers: &[Buffer]) -> Result<Vec<u8>, i32> {
        let mut bytes = Vec::new();
        for buffer in buffers {
            let start = bytes.len();
            bytes.resize(start + buffer.len as usize, 0);
            self.read(buffer.address, &mut bytes[start..])?;
        }
        Ok(bytes)
    }

    /// Spreads bytes over the buffers; what does not fit is left out.
    fn scatter(&mut self, buffers: &[Buffer], bytes: &[u8]) -> Result<(), i32> {
        let mut rest = bytes;
        for buffer in buffers {
            let (now, later) = rest.split_at(rest.len().min(buffer.len as usize));
            if !now.is_empty() {
                self.write(buffer.address, now)?;
            }
            rest = later;
        }
        Ok(())
    }
}

/// A piece of the guest's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Where.
    pub address: u64,
    /// How many bytes.
    pub len: u64,
}

impl Buffer {
    /// One buffer, cut to what one call may move.
    pub(super) fn one(address: u64, len: u64) -> Vec<Buffer> {
        vec![Buffer {
            address,
            len: len.min(TRANSFER_MAX),
        }]
    }

    /// Bytes of all of them.
    pub(super) fn total(buffers: &[Buffer]) -> u64 {
        buffers.iter().map(|buffer| buffer.len).sum()
    }
}

impl GuestMemory for crate::Memory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), i32> {
        crate::Memory::read(self, address, buffer)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), i32> {
        crate::Memory::write(self, address, bytes)
    }

    fn write_through(&mut self, address: u64, bytes: &[u8]) -> Result<(), i32> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address + done as u64;
            let Some((_, mapping)) = self.find(at) else {
                return Err(libc::EFAULT);
            };
            let (prot, end) = (mapping.prot, mapping.end);
            let part = ((end - at) as usize).min(bytes.len() - done);
            let first = at - at % PAGE;
            let len = at + part as u64 - first;
            let both = libc::PROT_READ | libc::PROT_WRITE;
            if prot & both == both {
                crate::Memory::write(self, at, &bytes[done..done + part])?;
            } else {
                self.protect(first, len, both)?;
                crate::Memory::write(self, at, &bytes[done..done + part])?;
                self.protect(first, len, prot)?;
            }
            done += part;
        }
        Ok(())
    }

    fn read_string(&self, address: u64) -> Result<Vec<u8>, i32> {
        crate::Memory::read_string(self, address)
    }
}
