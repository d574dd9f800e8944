/**
 * An answer to a question is an object. A client that refuses a question says so with a JSON-RPC error ("User rejected sampling
 * request", -1): that is an answer too, and is kept as an object with one member that no answer has.
 */
import { type ErrorObject, isObject, type JsonObject } from "@skein/protocol/JsonRpc"

const member = "@skein/tasks/refused"

/** A refusal, as an answer. */
export const make = (error: ErrorObject): JsonObject => ({ [member]: error })

/** The error of an answer that is a refusal. What looks like one, and has no error in it, is an answer. */
export const read = (answer: JsonObject): ErrorObject | undefined => {
  const error = answer[member]
  return isObject(error) && Number.isSafeInteger(error["code"]) && typeof error["message"] === "string"
    ? error as unknown as ErrorObject
    : undefined
}
