//! Loans: after the owner has refused further loans and counted none, nobody uses the memory any more.

use std::sync::Arc;

use aeron_memory::Loans;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use crate::{check, check_fails};

/// The functions of [`Loans`].
trait Lending: Default + Send + Sync + 'static {
    fn begin(&self) -> bool;
    fn end(&self);
    fn refuse(&self);
    fn count(&self) -> usize;
}

impl Lending for Loans {
    fn begin(&self) -> bool {
        self.begin()
    }

    fn end(&self) {
        self.end();
    }

    fn refuse(&self) {
        self.refuse();
    }

    fn count(&self) -> usize {
        self.count()
    }
}

/// Loans with the end and the number in two words.
#[derive(Default)]
struct TwoWords {
    is_over: AtomicBool,
    count: AtomicUsize,
}

impl Lending for TwoWords {
    fn begin(&self) -> bool {
        let may_begin = !self.is_over.load(Ordering::Acquire);
        if may_begin {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        may_begin
    }

    fn end(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }

    fn refuse(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

/// Two users borrow the memory while its owner ends the loans. If no user is left, the owner takes the memory back.
fn lend<L: Lending>() {
    let loans = Arc::new(L::default());
    let is_taken_back = Arc::new(AtomicBool::new(false));
    let users = [(); 2].map(|()| {
        let (loans, is_taken_back) = (Arc::clone(&loans), Arc::clone(&is_taken_back));
        thread::spawn(move || {
            if loans.begin() {
                assert!(!is_taken_back.load(Ordering::Relaxed), "used after the end");
                loans.end();
            }
        })
    });
    loans.refuse();
    if loans.count() == 0 {
        is_taken_back.store(true, Ordering::Relaxed);
    }
    for user in users {
        user.join().unwrap();
    }
    assert_eq!((loans.begin(), loans.count()), (false, 0));
}

#[test]
fn no_loan_begins_or_lasts_after_the_owner_has_counted_none() {
    check(lend::<Loans>);
}

#[test]
fn with_the_end_in_a_word_of_its_own_a_loan_begins_after_the_end() {
    check_fails("used after the end", lend::<TwoWords>);
}
