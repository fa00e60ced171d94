//! Field readers for what real peers send: `null` and `""` for absent, numbers as text, floats for integers.
//!
//! They are used with `#[serde(deserialize_with)]`, so a plain v1.0 value still goes straight into its field.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// `null` is the default value.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// `null` and the empty string are absent.
pub(crate) fn non_empty<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: AsRef<str> + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.filter(|text| !text.as_ref().is_empty()))
}

/// A flag; `null` is false.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(optional_flag(deserializer)?.unwrap_or(false))
}

/// A flag whose absence matters.
pub(crate) fn optional_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    struct Flag;
    impl Visitor<'_> for Flag {
        type Value = Option<bool>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("true or false")
        }
        fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
            Ok(Some(value))
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            match text {
                "true" => Ok(Some(true)),
                "false" => Ok(Some(false)),
                "" => Ok(None),
                _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
            }
        }
        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(Flag)
}

/// A count: an integer of at least zero, also as text or as a float without a fraction.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Count;
    impl Visitor<'_> for Count {
        type Value = Option<u32>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an integer of at least 0")
        }
        fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
            let count = u32::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))?;
            Ok(Some(count))
        }
        fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
            let count = u32::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))?;
            Ok(Some(count))
        }
        fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
            if value.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&value) {
                return Err(E::invalid_value(de::Unexpected::Float(value), &self));
            }
            Ok(Some(value as u32))
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            if text.is_empty() {
                return Ok(None);
            }
            text.parse().map(Some).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
        }
        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(Count)
}

/// An object that must be there. Derived readers would also take an array of the fields in order; this does not.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(Object(PhantomData))
}

/// The same for a whole text, which must end after the object.
pub(crate) fn object_from_slice<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = object(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// An object, or `null` for none.
pub(crate) fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<ObjectValue<T>>::deserialize(deserializer)?.map(|ObjectValue(value)| value))
}

/// An object, or `null` for the default value.
pub(crate) fn object_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(optional_object(deserializer)?.unwrap_or_default())
}

/// The original protocol buffer name of a camelCase member.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(access))
    }
}

struct ObjectValue<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer).map(Self)
    }
}
