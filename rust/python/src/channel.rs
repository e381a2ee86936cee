//! [`PyChannelUriBuilder`]: builds channel URIs from typed values.

use aeron_protocol::uri::{ChannelUri, ChannelUriBuilder, Media, UriError, key};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyType};

use crate::argument::{self, Argument, wrong_type};
use crate::errors::raise;

/// A channel as an argument: a `str` or a `ChannelUriBuilder`.
pub struct Channel(pub String);

impl Argument for Channel {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if let Ok(builder) = value.cast::<PyChannelUriBuilder>() {
            return Ok(Self(builder.borrow().builder.build().to_string()));
        }
        match value.cast::<PyString>() {
            Ok(text) => Ok(Self(text.to_str()?.to_owned())),
            Err(_) => Err(wrong_type(
                value,
                name,
                "a channel: pass a str, such as \"aeron:ipc\", or a ChannelUriBuilder",
            )),
        }
    }
}

/// Builds a channel URI from typed values. One thread at a time may use it: it is not thread-safe.
///
/// Keywords are the names of the channel's parameters, with `_` in place of `-`. Sizes are bytes or texts
/// such as `"64k"`, durations are nanoseconds or texts such as `"5s"`. Each value is checked when it is set.
///
/// Args:
///     media: `"ipc"` or `"udp"`.
///     spy: Whether the channel has the prefix `aeron-spy:`.
///     parameters: Parameters of the channel. The documentation page of channel parameters lists them all.
///
/// Raises:
///     InvalidArgumentError: If the media or a parameter is not known.
///     InvalidChannelError: If a value is not valid.
///
/// Example:
///     ```python
///     aeron.ChannelUriBuilder("udp", endpoint="localhost:20121", term_length="64k").build()
///     ```
#[pyclass(module = "aeron", name = "ChannelUriBuilder")]
pub struct PyChannelUriBuilder {
    builder: ChannelUriBuilder,
}

/// The state of a pickled builder: whether it has the spy prefix, and its parameters.
type PickledBuilder = (bool, Vec<(String, String)>);

fn uri_error(error: UriError) -> PyErr {
    raise("InvalidChannelError", error.to_string())
}

/// Returns the parameter for a Python keyword.
fn key_of(name: &str) -> PyResult<&'static str> {
    let name = name.replace('_', "-");
    let known = key::ALL.iter().find(|key| **key == name);
    known.copied().ok_or_else(|| {
        raise(
            "InvalidArgumentError",
            format!("unknown channel parameter {name:?}"),
        )
    })
}

/// Returns the text of `value`, which is a bool, an integer or a str. `name` is the name of the parameter, for errors.
fn text_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(value.is_true().to_string());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    let number = value.extract::<i128>();
    let number = number.map_err(|_| wrong_type(value, name, "a str, an integer or a bool"))?;
    Ok(number.to_string())
}

#[pymethods]
impl PyChannelUriBuilder {
    #[new]
    #[pyo3(
        signature = (media = "ipc".to_owned(), *, spy = false, **parameters),
        text_signature = "(media=\"ipc\", *, spy=False, **parameters)"
    )]
    fn new(
        #[pyo3(from_py_with = argument::media)] media: String,
        #[pyo3(from_py_with = argument::spy)] spy: bool,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let media = match media.as_str() {
            "ipc" => Media::Ipc,
            "udp" => Media::Udp,
            other => {
                return Err(raise(
                    "InvalidArgumentError",
                    format!("media={other:?} is not \"ipc\" or \"udp\""),
                ));
            }
        };
        let mut builder = ChannelUriBuilder::new(media);
        builder.spy(spy);
        let mut this = Self { builder };
        for (name, value) in parameters.into_iter().flatten() {
            this.put(name.cast::<PyString>()?.to_str()?, &value)?;
        }
        Ok(this)
    }

    /// Creates a builder with the parameters of a channel.
    ///
    /// Args:
    ///     channel: A channel URI.
    ///
    /// Returns:
    ///     The builder.
    ///
    /// Raises:
    ///     InvalidChannelError: If the channel or a value is not valid.
    #[staticmethod]
    fn parse(#[pyo3(from_py_with = argument::channel)] channel: String) -> PyResult<Self> {
        let uri = ChannelUri::parse(&channel).map_err(uri_error)?;
        Ok(Self {
            builder: ChannelUriBuilder::from_channel(&uri).map_err(uri_error)?,
        })
    }

    /// Sets a parameter.
    ///
    /// Args:
    ///     name: Name of the parameter, with `_` or `-`.
    ///     value: The value; `None` removes the parameter.
    ///
    /// Returns:
    ///     The builder itself.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the parameter is not known.
    ///     InvalidChannelError: If the value is not valid.
    #[pyo3(name = "put")]
    fn put_chained<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = argument::name)] name: String,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.borrow_mut().put(&name, value)?;
        Ok(slf)
    }

    /// Returns the value of a parameter.
    ///
    /// Args:
    ///     name: Name of the parameter, with `_` or `-`.
    ///
    /// Returns:
    ///     The value as text, or `None`.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the parameter is not known.
    fn get(&self, #[pyo3(from_py_with = argument::name)] name: String) -> PyResult<Option<String>> {
        Ok(self.builder.get(key_of(&name)?).map(str::to_owned))
    }

    /// Removes all parameters and the spy prefix.
    fn clear(&mut self) {
        self.builder.clear();
    }

    /// Sets the position at which a publication starts.
    ///
    /// The method sets the parameters `term-length`, `init-term-id`, `term-id` and `term-offset`.
    ///
    /// Args:
    ///     position: Position in bytes, a multiple of 32.
    ///     initial_term_id: Id of the stream's first term.
    ///     term_length: Length of a term in bytes, a power of two.
    ///
    /// Raises:
    ///     InvalidChannelError: If a value is not valid.
    fn initial_position(
        &mut self,
        #[pyo3(from_py_with = argument::position)] position: i64,
        #[pyo3(from_py_with = argument::initial_term_id)] initial_term_id: i32,
        #[pyo3(from_py_with = argument::term_length)] term_length: i32,
    ) -> PyResult<()> {
        self.builder
            .initial_position(position, initial_term_id, term_length)
            .map(drop)
            .map_err(uri_error)
    }

    /// Sets flow control by the slowest receiver (`fc=min`).
    ///
    /// Args:
    ///     group_min_size: Number of receivers that must be present before the publication is connected. `None`
    ///         stands for the driver's setting.
    ///     receiver_timeout_ns: Nanoseconds without a status message after which flow control removes a
    ///         receiver. `None` stands for the driver's setting.
    ///
    /// Returns:
    ///     The builder itself.
    ///
    /// Raises:
    ///     InvalidChannelError: If a value is not valid.
    #[pyo3(signature = (group_min_size = None, receiver_timeout_ns = None))]
    fn min_flow_control<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = argument::group_min_size)] group_min_size: Option<i32>,
        #[pyo3(from_py_with = argument::receiver_timeout_ns)] receiver_timeout_ns: Option<i64>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.borrow_mut()
            .builder
            .min_flow_control(group_min_size, receiver_timeout_ns)
            .map_err(uri_error)?;
        Ok(slf)
    }

    /// Sets flow control by the slowest receiver with the group tag (`fc=tagged`).
    ///
    /// Args:
    ///     group_tag: Group tag of the receivers. `None` stands for the driver's setting.
    ///     group_min_size: Number of receivers with the tag that must be present before the publication is
    ///         connected. `None` stands for the driver's setting.
    ///     receiver_timeout_ns: Nanoseconds without a status message after which flow control removes a
    ///         receiver. `None` stands for the driver's setting.
    ///
    /// Returns:
    ///     The builder itself.
    ///
    /// Raises:
    ///     InvalidChannelError: If a value is not valid.
    #[pyo3(signature = (group_tag = None, group_min_size = None, receiver_timeout_ns = None))]
    fn tagged_flow_control<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = argument::group_tag)] group_tag: Option<i64>,
        #[pyo3(from_py_with = argument::group_min_size)] group_min_size: Option<i32>,
        #[pyo3(from_py_with = argument::receiver_timeout_ns)] receiver_timeout_ns: Option<i64>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.borrow_mut()
            .builder
            .tagged_flow_control(group_tag, group_min_size, receiver_timeout_ns)
            .map_err(uri_error)?;
        Ok(slf)
    }

    /// Checks the parameters together, as a driver does.
    ///
    /// Raises:
    ///     InvalidChannelError: If parameters contradict each other.
    fn validate(&self) -> PyResult<()> {
        self.builder.validate().map_err(uri_error)
    }

    /// Returns the channel URI.
    ///
    /// Returns:
    ///     The URI as text.
    fn build(&self) -> String {
        self.builder.build().to_string()
    }

    /// Pickles the parameters and not the URI, because the URI of an incomplete channel cannot be parsed.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyType>, (&'static str,), PickledBuilder) {
        let channel = slf.borrow().builder.build();
        let media = match channel.media() {
            Media::Ipc => "ipc",
            Media::Udp => "udp",
        };
        let parameters = channel.parameters();
        let parameters = parameters.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let state = (channel.is_spy(), parameters.collect());
        (slf.get_type(), (media,), state)
    }

    /// Restores the spy prefix and the parameters of a pickled builder.
    fn __setstate__(&mut self, state: PickledBuilder) -> PyResult<()> {
        let (is_spy, parameters) = state;
        self.builder.spy(is_spy);
        for (key, value) in parameters {
            self.builder.put(&key, &value).map_err(uri_error)?;
        }
        Ok(())
    }

    fn __str__(&self) -> String {
        self.build()
    }

    fn __repr__(&self) -> String {
        format!("<ChannelUriBuilder {}>", self.build())
    }
}

impl PyChannelUriBuilder {
    fn put(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = key_of(name)?;
        if value.is_none() {
            self.builder.unset(key);
        } else {
            self.builder
                .put(key, text_of(value, name)?)
                .map_err(uri_error)?;
        }
        Ok(())
    }
}
