/**
 * Adds an entry to a configuration of TOML. The entry becomes a table at the end of the file, so that the rest of the
 * file stays as it is. An entry of the same name is not replaced: there is no editor of TOML that keeps comments among
 * the dependencies.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Toml from "effect/encoding/Toml"
import { equals } from "effect/Equal"
import * as Result from "effect/Result"

/** A text as a basic string of TOML. It has all escapes of JSON, and does not allow DEL. */
const tomlText = (text: string): string => JSON.stringify(text).replaceAll("\u007f", "\\u007f")

const tomlKey = (key: string): string => /^[\w-]+$/.test(key) ? key : tomlText(key)

const tomlValue = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`
  if (typeof value !== "object" || value === null) return tomlText(String(value))
  return `{ ${Object.entries(value).map(([key, each]) => `${tomlKey(key)} = ${tomlValue(each)}`).join(", ")} }`
}

/** An entry of texts, lists and tables as a table of a document. */
export const tomlEntry = (member: string, name: string, entry: JsonObject): string =>
  [
    `[${tomlKey(member)}.${tomlKey(name)}]`,
    ...Object.entries(entry).map(([key, value]) => `${tomlKey(key)} = ${tomlValue(value)}`)
  ].join("\n")

/** The entries of a document, and the rest of it. */
const partsOf = (text: string, member: string) => {
  const parsed = Toml.parse(text)
  if (Result.isFailure(parsed)) return undefined
  const { [member]: servers, ...rest } = parsed.success
  return { rest, servers: isObject(servers) ? servers as Readonly<Record<string, unknown>> : {} }
}

/**
 * The text with the entry. Returns the same text if the entry is there already, and fails if the text is not valid, or
 * has another entry of that name.
 */
export const withTomlEntry = (
  text: string,
  member: string,
  name: string,
  entry: JsonObject
): Result.Result<string, string> => {
  const before = partsOf(text, member)
  if (before === undefined) return Result.fail("is not valid TOML")
  if (Object.hasOwn(before.servers, name)) {
    return equals(before.servers[name], entry)
      ? Result.succeed(text)
      : Result.fail(`has another server ${quote(name)}: change it by hand (--print shows the entry), or use --name`)
  }
  const eol = /\r\n/.test(text) ? "\r\n" : "\n"
  const above = text === "" ? "" : `${text}${text.endsWith("\n") ? "" : eol}${eol}`
  const edited = `${above}${tomlEntry(member, name, entry).replaceAll("\n", eol)}${eol}`
  const after = partsOf(edited, member)
  if (after === undefined) return Result.fail(`cannot have another table: its ${member} is not written as tables`)
  const { [name]: written, ...others } = after.servers
  return equals(written, entry) && equals(others, before.servers) && equals(after.rest, before.rest)
    ? Result.succeed(edited)
    : Result.fail("could not be edited without changing its other members")
}
