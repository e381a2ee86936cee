//! The types of fields that only the driver has, and the reading of texts with the rules of the C driver.

use aeron_agent::setting::{Grammar, Setting};
use aeron_protocol::uri::ReceiverGroup;

use super::Context;
use crate::config::{TerminationValidator, ThreadNaming, ThreadingMode};

/// Parses the text of the variable and stores the value; a number is clamped to the limits.
///
/// If the text is invalid, the value does not change and the result is a warning. If only the leading digits of the
/// text count, the result is a warning too.
pub(super) fn read(
    setting: &Setting<Context>,
    context: &mut Context,
    text: &str,
) -> Option<String> {
    let misread = misread(setting, text);
    let stored = setting
        .grammar
        .parse(text)
        .is_some_and(|value| setting.set(context, setting.grammar.clamp(value)));
    let invalid = || format!("{}={text} is invalid, using default", setting.variable());
    let reason = misread.or_else(|| (!stored).then(invalid))?;
    Some(format!("WARNING: {reason}"))
}

/// Returns why `text` does not mean what it seems to mean; `None` for any other text. The C driver has no warning
/// for such a text.
pub(super) fn misread(setting: &Setting<Context>, text: &str) -> Option<String> {
    let variable = setting.variable();
    match setting.grammar {
        Grammar::Boolean if setting.grammar.parse(text).is_none() => Some(format!(
            "{variable}={text} is neither true nor false (true, on, 1, false, off, 0), using default"
        )),
        Grammar::LeadingDigits(..) => {
            let number = text.trim_ascii();
            let digits = number.trim_start_matches(|c: char| c.is_ascii_digit());
            let counted = &number[..number.len() - digits.len()];
            let unit = match setting.name.ends_with("_ms") {
                true => " milliseconds",
                false => "",
            };
            (!counted.is_empty() && !digits.is_empty())
                .then(|| format!("{variable}={text} has more than digits, using {counted}{unit}"))
        }
        _ => None,
    }
}

aeron_agent::text_setting_fields! {
    Context;
    ThreadingMode: &["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"],
        |mode| mode.name().to_owned(), |text| ThreadingMode::from_name(&text);
    ThreadNaming: &["classic", "new"], |naming| naming.name().to_owned(), |text| ThreadNaming::from_name(&text);
    ReceiverGroup: &["infer", "true", "false"],
        |group| group_name(*group).to_owned(), |text| Some(group_from_name(&text));
    TerminationValidator: &[],
        |validator| validator.name().to_owned(), |text| Some(TerminationValidator::from_name(text));
}

fn group_name(group: ReceiverGroup) -> &'static str {
    match group {
        ReceiverGroup::Infer => "infer",
        ReceiverGroup::Yes => "true",
        ReceiverGroup::No => "false",
    }
}

/// Returns the value for a text. As in the C driver, an unknown text gives [`ReceiverGroup::No`].
fn group_from_name(name: &str) -> ReceiverGroup {
    match name {
        "infer" => ReceiverGroup::Infer,
        "true" => ReceiverGroup::Yes,
        _ => ReceiverGroup::No,
    }
}
