/**
 * The fields that all messages share: the id of a request, and `_meta` of params and results.
 *
 * All objects of the model are open: members that the model does not define are kept.
 */
import * as Schema from "effect/Schema"
import { field, since } from "./Annotate.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { AnyObject } from "./Primitive.ts"

/** The id of a request: a string or an integer. */
export const RequestId = Schema.Union([Schema.String, Schema.Int])
export type RequestId = typeof RequestId.Type

/** The value of a `_meta` member: free metadata. `MetaKey` has the rules for its keys. */
export const Meta = AnyObject
export type Meta = JsonObject

/** `_meta` as a field of definitions and content, which have it since 2025-06-18. */
export const metaFields = { _meta: since("2025-06-18", Schema.optionalKey(Meta)) }

// A `_meta` that is not an object is ignored, not refused. `RequestMeta` checks the members that the stateless revision
// requires.
const paramsMeta = field(Schema.optionalKey(Meta), { lift: (value) => isObject(value) ? value : undefined })

/** The field of every request's params: `_meta`. `RequestMeta` reads its reserved keys. */
export const requestFields = { _meta: paramsMeta }

/** The field of every notification's params: `_meta`. */
export const notificationFields = { _meta: paramsMeta }

/**
 * The field of a client's response to a server: `_meta`. In a session-based revision the response is a result; in the
 * stateless revision it is part of the params of the repeated request, so that a `_meta` that is not an object is
 * ignored there as in params.
 */
export const answerFields = { _meta: paramsMeta }

/** The fields of every result. Reading and writing fill in `resultType`: a result without one is complete. */
export const resultFields = {
  _meta: Schema.optionalKey(Meta),
  resultType: since("2026-07-28", Schema.optionalKey(Schema.String), { default: "complete" })
}

/** The params of a request that has `_meta` and nothing else. */
export class RequestParams extends Schema.Opaque<RequestParams>()(Schema.Struct(requestFields)) {}

/** The params of a notification that has `_meta` and nothing else. */
export class NotificationParams extends Schema.Opaque<NotificationParams>()(Schema.Struct(notificationFields)) {}

/** A result without content: the request succeeded. */
export class EmptyResult extends Schema.Opaque<EmptyResult>()(Schema.Struct(resultFields)) {}
