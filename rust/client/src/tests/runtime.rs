//! Life and death of a client.

use crate::testing::FakeDriver;

/// 03-69
#[test]
fn nothing_is_sent_on_connect() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    driver.run_ms(&aeron, 100);
    assert!(driver.sent().is_empty());
}
