//! Measures memory, so that a test can limit how much decoding takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Once;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// An allocator that counts the bytes that the current thread requested and holds.
pub struct Counting;

// SAFETY: every call is forwarded to the system's allocator; counting does not touch the allocated memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks can exist while one is copied to the other.
        count(size, 0);
        count(0, layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn count(taken: usize, given: usize) {
    let _ = LIVE.try_with(|live| {
        live.set((live.get() + taken).saturating_sub(given));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

/// The result of `work`, and the peak of the memory that it held in addition to the memory held before, in bytes.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    static QUIET: Once = Once::new();
    // Decoding can panic inside and recover, and a backtrace takes more memory than decoding.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get() - before)
}
