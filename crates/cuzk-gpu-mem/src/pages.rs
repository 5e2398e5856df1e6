//! Page-aligned host memory straight from the operating system: lazily committed, zeroed, and on
//! huge pages where the system has them.

use std::ptr::NonNull;

/// A huge page on the platforms that matter here.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// The system's page size.
pub(crate) fn page_size() -> usize {
    #[cfg(unix)]
    {
        rustix::param::page_size()
    }
    #[cfg(not(unix))]
    {
        4096
    }
}

/// A private anonymous mapping, zeroed, page-aligned, huge-page-aligned when it is large.
///
/// Invariant: `start` is the first of `bytes` bytes that this value owns, mapped readable and
/// writable until it is dropped; `mapping` is what the system gave, of which they are a part.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    mapping: NonNull<u8>,
    mapping_bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; `Pages` hands out only raw pointers
// and their users keep the aliasing rules.
unsafe impl Send for Pages {}
// SAFETY: as above; `&Pages` gives no access to the bytes.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `bytes > 0` rounded up to whole pages; `None` when the system refuses.
    pub(crate) fn map(bytes: usize) -> Option<Self> {
        let align = if bytes >= HUGE_PAGE {
            HUGE_PAGE
        } else {
            page_size()
        };
        let bytes = bytes.checked_next_multiple_of(page_size())?;
        let mapping_bytes = bytes.checked_add(align - page_size())?;
        let mapping = sys::map(mapping_bytes)?;
        let skip = mapping.as_ptr().align_offset(align);
        // SAFETY: skip <= align - page_size, since the mapping is page-aligned, so the result and
        // `bytes` bytes after it lie in the mapping.
        let start = unsafe { mapping.add(skip) };
        let pages = Self {
            start,
            bytes,
            mapping,
            mapping_bytes,
        };
        if align == HUGE_PAGE {
            sys::advise_huge(pages.start, pages.bytes);
        }
        Some(pages)
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours (invariant) and nothing refers to it once its owner drops it.
        unsafe { sys::unmap(self.mapping, self.mapping_bytes) }
    }
}

#[cfg(unix)]
mod sys {
    use std::ptr::NonNull;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        // Not counted against overcommit: an emulated device of 16 GiB touches little of it.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the system's choosing aliases nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        };
        NonNull::new(start.ok()?.cast())
    }

    pub(super) fn advise_huge(start: NonNull<u8>, bytes: usize) {
        // Advice only: where there are no huge pages, ordinary ones serve.
        #[cfg(target_os = "linux")]
        // SAFETY: the range is a mapping of ours, and the advice does not change its contents.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        #[cfg(not(target_os = "linux"))]
        let _ = (start, bytes, madvise as usize, Advice::Normal);
    }

    /// # Safety
    /// The mapping is the caller's, whole, and unused from now on.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: as the caller promises.
        let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(not(unix))]
mod sys {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, super::page_size()).ok()
    }

    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })
    }

    pub(super) fn advise_huge(_: NonNull<u8>, _: usize) {}

    /// # Safety
    /// The mapping is the caller's, whole, and unused from now on.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: `map` allocated it with this layout.
            unsafe { dealloc(start.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zeroed_aligned_and_writable() {
        for bytes in [1, 4096, 4097, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 1] {
            let pages = Pages::map(bytes).unwrap();
            assert!(pages.bytes() >= bytes && pages.bytes().is_multiple_of(page_size()));
            let align = if bytes >= HUGE_PAGE {
                HUGE_PAGE
            } else {
                page_size()
            };
            assert_eq!(pages.start().as_ptr().align_offset(align), 0);
            let last = pages.start().as_ptr().wrapping_add(pages.bytes() - 1);
            // SAFETY: the last byte of a mapping this test owns.
            unsafe {
                assert_eq!(last.read(), 0);
                last.write(7);
                assert_eq!(last.read(), 7);
            }
        }
    }
}
