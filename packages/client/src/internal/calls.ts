/**
 * From a method and its params to its result: what may be asked, how it is written, and how the answer is read.
 */
import * as Codec from "@skein/protocol/Codec"
import type { InputRequiredResult } from "@skein/protocol/InputRequired"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import type { CallOptions } from "@skein/runtime/Exchange"
import type { Peer } from "@skein/runtime/Peer"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ClientError } from "../ClientError.ts"
import { fromRequest } from "./requestFailure.ts"
import { repair } from "./repair.ts"

/** What a call is made with. */
export interface Line {
  readonly peer: Peer
  readonly revision: Revision.Revision
  /** What the server declared, as it did. */
  readonly capabilities: JsonObject
  readonly enforceCapabilities: boolean
  /** Adds what each request says about itself in the request era; nothing in the session era. */
  readonly stamp: (params: JsonObject) => JsonObject
  /** Logs a warning. */
  readonly warn: (...message: ReadonlyArray<unknown>) => void
}

type AnyMethod = Pick<Method.AnyRequest, "name" | "from" | "since" | "until" | "capability">

const unsupported = (method: string, message: string, cause?: unknown): ClientError =>
  new ClientError({ reason: "Unsupported", method, message, cause })

/** Why a method may not be called, if it may not. */
export const refusal = (line: Line, { name, from, since, until, capability }: AnyMethod): ClientError | undefined => {
  const { revision } = line
  if (from === "server" || !Revision.within(revision, since, until)) {
    return unsupported(name, `A client has no ${name} in ${revision}`)
  }
  if (!line.enforceCapabilities || capability === undefined || capability.side === "client") return undefined
  if (Method.has(line.capabilities, capability, revision)) return undefined
  const message = `The server did not declare ${capability.path.join(".")}, which ${name} needs (enforceCapabilities)`
  return unsupported(name, message)
}

const questions = (result: InputRequiredResult): string => {
  const asked = Object.values(result.inputRequests ?? {}).map((request) => request.method)
  return asked.length === 0 ? "to be asked again with its requestState" : [...new Set(asked)].join(", ")
}

/** Reads an answer; of a listing that is not valid as a whole, the items that are. */
const decode = <R>(method: Method.RequestMethod<unknown, R>, line: Line, raw: JsonObject) => {
  const decoded = Codec.decodeAnswer(method, line.revision, raw)
  if (Result.isSuccess(decoded)) return decoded
  const repaired = repair(method.name, raw, line.revision)
  if (repaired === undefined) return decoded
  const again = Codec.decodeAnswer(method, line.revision, repaired.raw)
  if (Result.isSuccess(again)) line.warn(`${method.name}: malformed items were left out`, repaired.dropped.slice(0, 8))
  return again
}

const read = <R>(
  method: Method.RequestMethod<unknown, R>,
  line: Line,
  raw: JsonObject
): Effect.Effect<R, ClientError> => {
  const { name } = method
  const decoded = decode(method, line, raw)
  if (Result.isFailure(decoded)) {
    const message = `The answer to ${name} is not valid: ${decoded.failure}`
    return Effect.fail(new ClientError({ reason: "InvalidAnswer", method: name, message }))
  }
  const answer = decoded.success
  switch (answer._tag) {
    case "Complete":
      return Effect.succeed(answer.result)
    case "InputRequired":
      return Effect.fail(unsupported(name, `The server wants ${questions(answer.result)} before it answers ${name}`))
    default: {
      const message = `The server answered ${name} with a task, which was not asked for`
      return Effect.fail(new ClientError({ reason: "InvalidAnswer", method: name, message }))
    }
  }
}

/** Makes one call. */
export const call = <P, R>(
  line: Line,
  method: Method.RequestMethod<P, R>,
  params: P,
  options: CallOptions = {}
): Effect.Effect<R, ClientError> =>
  Effect.suspend(() => {
    const refused = refusal(line, method)
    if (refused !== undefined) return Effect.fail(refused)
    const written = Codec.encodeParams(method, line.revision, params)
    if (Result.isFailure(written)) {
      const { message } = written.failure
      return Effect.fail(unsupported(method.name, `${method.name} cannot be sent: ${message}`, written.failure))
    }
    const sent = line.peer.request(method.name, line.stamp(written.success), options)
    return Effect.matchEffect(sent, {
      onSuccess: (raw) => read(method as Method.RequestMethod<unknown, R>, line, raw),
      onFailure: (error) => Effect.fail(fromRequest(method.name, error))
    })
  })
