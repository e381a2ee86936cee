//! [`PyChannelUriBuilder`]: channels made from typed values.

use aeron_protocol::uri::{ChannelUri, ChannelUriBuilder, Media, UriError, key};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyType};

use crate::argument::{self, Argument, wrong_type};
use crate::errors::raise;

/// A channel as an argument: text, or anything that `str` makes one of.
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

/// Makes a channel from typed values: `ChannelUriBuilder("ipc", term_length=65536, alias="trades")`.
///
/// Keywords are the names of the parameters with `_` for `-`, in the units of the channel: sizes in bytes or as `"64k"`,
/// durations in nanoseconds or as `"5s"`. Each value is checked when it is set. Serves one thread at a time.
#[pyclass(module = "aeron._aeron", name = "ChannelUriBuilder")]
pub struct PyChannelUriBuilder {
    builder: ChannelUriBuilder,
}

/// A pickled builder: whether it has the spy prefix, and its parameters.
type State = (bool, Vec<(String, String)>);

fn uri_error(error: UriError) -> PyErr {
    raise("InvalidChannelError", error.to_string())
}

/// The parameter of this Python name.
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

/// The text of the parameter `name`: of a bool, an integer or a str.
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

    /// A builder with the parameters of a channel set.
    #[staticmethod]
    fn parse(#[pyo3(from_py_with = argument::channel)] channel: String) -> PyResult<Self> {
        let uri = ChannelUri::parse(&channel).map_err(uri_error)?;
        Ok(Self {
            builder: ChannelUriBuilder::from_channel(&uri).map_err(uri_error)?,
        })
    }

    /// Sets a parameter; `None` takes it back. Answers the builder.
    #[pyo3(name = "put")]
    fn put_chained<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = argument::name)] name: String,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.borrow_mut().put(&name, value)?;
        Ok(slf)
    }

    /// The value of a parameter as it is going to be printed, or `None`.
    fn get(&self, #[pyo3(from_py_with = argument::name)] name: String) -> PyResult<Option<String>> {
        Ok(self.builder.get(key_of(&name)?).map(str::to_owned))
    }

    /// Takes all parameters and the spy prefix back.
    fn clear(&mut self) {
        self.builder.clear();
    }

    /// Has the publication start at `position`: sets term length, both term ids and the term offset.
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

    /// Has the slowest receiver limit the sender (`fc=min`). `group_min_size` receivers make it connected; one that is silent
    /// for `receiver_timeout_ns` is gone. What is `None` the driver's settings decide. Answers the builder.
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

    /// As `min_flow_control`, by the receivers whose `gtag` is `group_tag` only (`fc=tagged`).
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

    /// Checks what holds between parameters; raises what a driver would answer.
    fn validate(&self) -> PyResult<()> {
        self.builder.validate().map_err(uri_error)
    }

    /// The channel's text.
    fn build(&self) -> String {
        self.builder.build().to_string()
    }

    /// Pickles the builder by its parts: the text of a channel that is not finished cannot be parsed.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (&'static str,), State) {
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
    fn __setstate__(&mut self, state: State) -> PyResult<()> {
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
                .put(key, &text_of(value, name)?)
                .map_err(uri_error)?;
        }
        Ok(())
    }
}
