/**
 * Makes the request of a call.
 *
 * The arguments of a model only change what the document lets them change: no value leaves its path segment, its query
 * parameter or its header.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import type * as HttpBody from "effect/http/HttpBody"
import * as Result from "effect/Result"
import type { Argument, Arguments } from "../arguments/arguments.ts"
import type { Operation } from "../document/operations.ts"
import {
  forCookie,
  forHeader,
  forPath,
  forQuery,
  forQuerystring,
  headerProblem,
  textOf,
  toJson
} from "../arguments/serialize.ts"
import { given, writeBody } from "./writeBody.ts"

/** The parts of a request that an operation determines. */
export interface RequestPlan {
  readonly operation: Operation
  readonly arguments: Arguments
  readonly accept: string
}

/** A request, without credentials. */
export interface ApiRequest {
  readonly method: Operation["method"]
  /** The URL without its query. */
  readonly url: string
  /** The names and values of the query, encoded. */
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly headers: Readonly<Record<string, string>>
  readonly cookies: ReadonlyArray<string>
  readonly body: HttpBody.HttpBody
}

/** A message for the model about an argument. */
const fault = (name: string, message: string): Result.Result<never, string> =>
  Result.fail(`The argument ${quote(name)} ${message}`)

/**
 * Whether a value would move the path elsewhere. Servers and proxies resolve `..` also where the slash beside it is
 * encoded, and URL parsers resolve `%2e%2e`.
 */
const leavesPath = (text: string): boolean => {
  let decoded = text
  for (let round = 0; round < 3; round++) {
    if (decoded.split(/[/\\;]/).some((part) => part === "." || part === "..")) return true
    const next = decoded.replaceAll(/%(2e|2f|5c|25)/gi, (escaped) => decodeURIComponent(escaped))
    if (next === decoded) return false
    decoded = next
  }
  return true
}

const valueOf = (argument: Argument, args: JsonObject): unknown => {
  const value = given(args, argument.name)
  const { mediaType, place } = argument
  if (value === undefined || mediaType === undefined || place === "querystring") return value
  // A text in another media type than JSON is the value itself.
  return typeof value === "string" && !/json\b/i.test(mediaType) ? value : toJson(value)
}

/** Whether a value would leave its path segment empty, so that the path would be that of another operation. */
const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null ? Object.values(value).every((each) => each === "") : value === ""

const pathOf = (path: string, list: ReadonlyArray<Argument>, args: JsonObject): Result.Result<string, string> => {
  let out = path
  for (const argument of list) {
    if (argument.place !== "path") continue
    const value = valueOf(argument, args)
    if (value === undefined || value === null || isEmpty(value)) return fault(argument.name, "must not be empty")
    const texts = typeof value === "object" ? Object.entries(value).flat() : [value]
    if (texts.some((text) => leavesPath(textOf(text)))) {
      return fault(argument.name, `must not have a path segment "." or ".."`)
    }
    out = out.replaceAll(`{${argument.key}}`, () => forPath(argument, value))
  }
  // A list of dots, or a value beside a literal dot, can still make such a segment.
  return out.split("/").some((part) => leavesPath(part)) && !path.split("/").some(leavesPath)
    ? Result.fail(`The arguments make the path ${quote(out)}, which has a segment "." or ".."`)
    : Result.succeed(out)
}

/** A whole number within a value that JavaScript may have changed when it read the call. */
const inexactIn = (value: unknown): number | undefined => {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value) ? value : undefined
  if (typeof value !== "object" || value === null) return undefined
  for (const member of Object.values(value)) {
    const found = inexactIn(member)
    if (found !== undefined) return found
  }
  return undefined
}

/** Makes the request of a call. Fails with a message for the model. */
export const makeRequest = (plan: RequestPlan, args: JsonObject): Result.Result<ApiRequest, string> => {
  for (const [name, value] of Object.entries(args)) {
    const inexact = inexactIn(value)
    if (inexact === undefined) continue
    return fault(
      name,
      `has a whole number beyond ${Number.MAX_SAFE_INTEGER} (about ${inexact}), which this server cannot pass on ` +
        "exactly. The API was not called. Do not repeat the call with a rounded number"
    )
  }
  const { operation, arguments: { list } } = plan
  // Some documents write parts of the query, or a fragment, into their paths to tell operations apart.
  const [, template = "", fixed = ""] = /^([^?#]*)(?:\?([^#]*))?/.exec(operation.path) ?? []
  const path = pathOf(template, list, args)
  if (Result.isFailure(path)) return Result.fail(path.failure)
  const query: Array<readonly [string, string]> = fixed.split("&").filter((pair) => pair !== "").map((pair) => {
    const [name = "", ...value] = pair.split("=")
    return [name, value.join("=")]
  })
  const headers: Record<string, string> = { accept: plan.accept }
  const cookies: Array<string> = []
  for (const argument of list) {
    const value = valueOf(argument, args)
    if (value === undefined || (value === null && argument.place !== "body")) continue
    if (argument.place === "query") query.push(...forQuery(argument, value))
    if (argument.place === "querystring") query.push(...forQuerystring(argument.mediaType ?? "", value))
    if (argument.place === "cookie") cookies.push(forCookie(argument, value))
    if (argument.place !== "header") continue
    const text = forHeader(argument, value)
    const problem = headerProblem(text)
    if (problem !== undefined) return fault(argument.name, problem)
    headers[argument.key.toLowerCase()] = text
  }
  const body = writeBody(plan.arguments, args)
  if (Result.isFailure(body)) return Result.fail(body.failure)
  return Result.succeed({
    method: operation.method,
    url: operation.baseUrl + path.success,
    query,
    headers,
    cookies,
    body: body.success
  })
}
