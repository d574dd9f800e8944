/**
 * The arguments of a tool or a prompt on the command line: one JSON object, or words such as `cups=2` and `cups:=2`,
 * which has JSON.
 */
import * as Json from "@skein/protocol/Json"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Result from "effect/Result"
import { quoteName } from "./format.ts"

/** A word with an argument. */
export interface Assignment {
  readonly name: string
  /** The text of `name=text`, or the value of `name:=json`. */
  readonly given: { readonly text: string } | { readonly value: unknown }
}

/** The arguments of a command line: an object of JSON, or words. */
export type GivenArguments = Readonly<Record<string, unknown>> | ReadonlyArray<Assignment>

/** Whether the arguments are words. */
export const isWords = (given: GivenArguments): given is ReadonlyArray<Assignment> => Array.isArray(given)

/** Whether a word is an argument rather than the name of a tool or a prompt. */
export const isAssignment = (word: string): boolean => /^[^-={[][^=]*=/.test(word)

const parseJson = (text: string) => Result.try((): unknown => Json.parse(text))

/** Whether a text is a number that would be rounded. Within an object or an array it is sent as it is. */
export const isRounded = (text: string): boolean => /^\s*-?\d+\s*$/.test(text) && !Number.isSafeInteger(Number(text))

/** The end of the message about such a number. */
export const roundedAdvice = "is an integer beyond 2^53, which would be rounded: write the arguments as one JSON object"

const reasonOf = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)

/** The end of the message about a line without `=`, such as `weight 2`. */
const assignmentAdvice = (words: ReadonlyArray<string>): string => {
  const at = words.findIndex((word) => !isAssignment(word))
  const [name = "", value] = words.slice(at)
  if (value === undefined || isAssignment(value) || !/^[A-Za-z]\w*$/.test(name)) return ""
  // A short number or a boolean is not a secret.
  return `; write ${quoteName(name)}=${/^(?:-?\d{1,3}|true|false)$/.test(value) ? value : "<value>"}`
}

/** A word as an argument. The value can be a secret: no message quotes it. */
const assignment = (owner: string, word: string): Result.Result<Assignment, string> => {
  const [, name, colon, text = ""] = /^([^=]+?)(:?)=([^]*)$/.exec(word) ?? []
  if (name === undefined) {
    return Result.fail(`The ${owner}'s arguments must be words of the form name=value, or one JSON object`)
  }
  if (colon === "") return Result.succeed({ name, given: { text } })
  if (isRounded(text)) return Result.fail(`The ${owner}'s argument ${quoteName(name)} ${roundedAdvice}`)
  const value = parseJson(text)
  return Result.isSuccess(value)
    ? Result.succeed({ name, given: { value: value.success } })
    : Result.fail(`The ${owner}'s argument ${quoteName(name)} is not valid JSON after :=`)
}

const parseObject = (owner: string, text: string): Result.Result<GivenArguments, string> => {
  const value = parseJson(text)
  if (Result.isFailure(value)) {
    return Result.fail(`The ${owner}'s arguments are not valid JSON: ${reasonOf(value.failure)}`)
  }
  return isObject(value.success)
    ? Result.succeed(value.success)
    : Result.fail(`The ${owner}'s arguments must be a JSON object`)
}

/** The words after the name of a tool or a prompt. `owner` has the arguments, in messages: `tool`. */
export const parseWords = (
  owner: string,
  words: ReadonlyArray<string>
): Result.Result<GivenArguments | undefined, string> => {
  const [first, ...more] = words
  if (first === undefined) return Result.succeed(undefined)
  if (/^\s*[{["]/.test(first)) {
    return more.length === 0 ? parseObject(owner, first) : Result.fail(`Unexpected arguments: ${more.join(" ")}`)
  }
  return Result.mapError(
    Result.all(words.map((word) => assignment(owner, word))),
    (message) => message + assignmentAdvice(words)
  )
}

/** The words of an argument of a prompt, all of whose values are strings. */
export const stringArguments = (
  given: GivenArguments | undefined
): Result.Result<Readonly<Record<string, string>> | undefined, string> => {
  if (given === undefined) return Result.succeed(undefined)
  const members = isWords(given)
    ? given.map(({ given, name }) => [name, "text" in given ? given.text : given.value] as const)
    : Object.entries(given)
  const repeated = members.find(([name], at) => members.findIndex(([other]) => other === name) !== at)
  if (repeated !== undefined) {
    return Result.fail(`The prompt's argument ${quoteName(repeated[0])} is given more than once`)
  }
  return members.every(([, value]) => typeof value === "string")
    ? Result.succeed(Object.fromEntries(members) as Readonly<Record<string, string>>)
    : Result.fail("The values of the prompt's arguments must be strings")
}
