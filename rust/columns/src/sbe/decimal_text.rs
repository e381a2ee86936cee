//! Decimals from texts.

use aeron_sbe::value::SbeValue;

/// Parses digits with an optional sign, point and power of ten, such as `-1.25` and `2e3`. All digits are kept.
///
/// # Errors
/// A reason: the text is not such a number, or it has more than 38 digits.
pub(super) fn decimal_of_text(text: &str) -> Result<SbeValue<'static>, String> {
    let (mantissa, exponent) = parse(text.trim()).ok_or_else(|| {
        let start: String = text.chars().take(50).collect();
        format!("{start:?} is not a decimal of at most 38 digits")
    })?;
    Ok(SbeValue::Decimal { mantissa, exponent })
}

fn parse(text: &str) -> Option<(i128, i32)> {
    let (number, power) = match text.split_once(['e', 'E']) {
        Some((number, power)) => (number, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let is_number = digits.len() + fraction.len() > 0;
    let mut all = digits.bytes().chain(fraction.bytes());
    if !is_number || !all.clone().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mantissa = all.try_fold(0_i128, |mantissa, digit| {
        mantissa
            .checked_mul(10)?
            .checked_add(i128::from(digit - b'0'))
    })?;
    let exponent = power.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    match whole.starts_with('-') {
        true => Some((-mantissa, exponent)),
        false => Some((mantissa, exponent)),
    }
}
