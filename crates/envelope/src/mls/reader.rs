//! Reads integers and vectors from bytes. Depends on nothing.

/// Bytes that are not the structure they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an MLS message: {problem} at byte {offset}")]
pub struct Malformed {
    /// Where, counted from the start of the outermost structure.
    pub offset: usize,
    /// What is wrong there.
    pub problem: &'static str,
}

/// A position in bytes that only moves forward.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of some bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            rest: bytes,
            offset: 0,
        }
    }

    /// How many bytes were read, counted from the start of the outermost structure.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The error for what stands at this position.
    #[must_use]
    pub const fn malformed(&self, problem: &'static str) -> Malformed {
        Malformed {
            offset: self.offset,
            problem,
        }
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Malformed`] at the end of the bytes, as for every other method.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, big-endian.
    ///
    /// # Errors
    /// As [`Reader::u8`].
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes, big-endian.
    ///
    /// # Errors
    /// As [`Reader::u8`].
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes, big-endian.
    ///
    /// # Errors
    /// As [`Reader::u8`].
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// The content of a vector.
    ///
    /// # Errors
    /// [`Malformed`] when its header is not the shortest for its length, or its length runs past the end of what
    /// encloses it.
    pub fn vec(&mut self) -> Result<&'a [u8], Malformed> {
        self.vec_reader().map(|content| content.rest)
    }

    /// Reads the elements of a vector, which must end where the vector ends.
    ///
    /// # Errors
    /// As [`Reader::vec`], and the error of an element.
    pub fn vec_of(
        &mut self,
        mut element: impl FnMut(&mut Reader<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut content = self.vec_reader()?;
        while !content.is_empty() {
            element(&mut content)?;
        }
        Ok(())
    }

    /// Reads a structure that may be absent.
    ///
    /// # Errors
    /// [`Malformed`] when the presence byte is neither 0 nor 1, and the error of the structure.
    pub fn optional(
        &mut self,
        present: impl FnOnce(&mut Reader<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let here = self.clone();
        match self.u8()? {
            0 => Ok(()),
            1 => present(self),
            _ => Err(here.malformed("a presence byte that is neither 0 nor 1")),
        }
    }

    /// Reads the header of a vector and moves past the vector.
    fn vec_reader(&mut self) -> Result<Reader<'a>, Malformed> {
        let here = self.clone();
        let first = self.u8()?;
        let low = u32::from(first & 0x3f);
        let (length, shortest) = match first >> 6 {
            0 => (low, 0),
            1 => (low << 8 | u32::from(self.u8()?), 1 << 6),
            2 => {
                let [a, b, c] = self.array::<3>()?;
                (u32::from_be_bytes([first & 0x3f, a, b, c]), 1 << 14)
            }
            _ => return Err(here.malformed("a vector header that is never valid")),
        };
        if length < shortest {
            return Err(here.malformed("a vector header longer than its length needs"));
        }
        let start = self.offset;
        let length = usize::try_from(length).map_err(|_| here.malformed("a vector that is too long"))?;
        let content = self
            .take(length)
            .ok_or(here.malformed("a vector longer than what encloses it"))?;
        Ok(Reader {
            rest: content,
            offset: start,
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let error = self.malformed("the end, too early");
        self.take(N).and_then(|bytes| bytes.try_into().ok()).ok_or(error)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.offset += length;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vec_length(header: &[u8], available: usize) -> Result<usize, &'static str> {
        let bytes = [header, &vec![0; available]].concat();
        Reader::new(&bytes)
            .vec()
            .map(<[u8]>::len)
            .map_err(|error| error.problem)
    }

    #[test]
    fn each_length_has_one_header() {
        for (header, length) in [
            (&[0x25][..], 37),
            (&[0x3f], 63),
            (&[0x40, 0x40], 64),
            (&[0x7b, 0xbd], 15_293),
            (&[0x7f, 0xff], 16_383),
            (&[0x80, 0x00, 0x40, 0x00], 16_384),
        ] {
            assert_eq!(vec_length(header, length), Ok(length), "{header:x?}");
            assert_eq!(
                vec_length(header, length - 1),
                Err("a vector longer than what encloses it")
            );
        }
    }

    #[test]
    fn the_longest_declared_length_allocates_nothing() {
        assert_eq!(
            vec_length(&[0x9d, 0x7f, 0x3e, 0x7d], 4),
            Err("a vector longer than what encloses it")
        );
        assert_eq!(
            vec_length(&[0xbf, 0xff, 0xff, 0xff], 4),
            Err("a vector longer than what encloses it")
        );
    }

    #[test]
    fn a_header_longer_than_needed_is_refused() {
        for header in [
            &[0x40, 0x10][..],
            &[0x40, 0x3f],
            &[0x80, 0, 0x3f, 0xff],
            &[0x80, 0, 0, 1],
        ] {
            assert_eq!(
                vec_length(header, 20_000),
                Err("a vector header longer than its length needs")
            );
        }
        for first in 0xc0..=0xff {
            assert_eq!(
                vec_length(&[first], 100),
                Err("a vector header that is never valid")
            );
        }
    }

    #[test]
    fn elements_end_where_their_vector_ends() {
        let pairs = |bytes: &[u8]| Reader::new(bytes).vec_of(|element| element.u16().map(drop));
        assert_eq!(pairs(&[4, 0, 1, 0, 2]), Ok(()));
        assert_eq!(pairs(&[3, 0, 1, 0, 2]).expect_err("odd").offset, 3);
    }

    #[test]
    fn presence_is_0_or_1() {
        let read = |bytes: &[u8]| Reader::new(bytes).optional(|present| present.u8().map(drop));
        assert_eq!((read(&[0]), read(&[1, 9])), (Ok(()), Ok(())));
        assert_eq!(read(&[2, 9]).expect_err("neither").offset, 0);
        assert_eq!(read(&[1]).expect_err("missing").offset, 1);
    }
}
