/**
 * Multi round-trip requests, since 2026-07-28 (basic/patterns/mrtr). A server that needs input from the client responds
 * with an `InputRequiredResult` instead of the result. The client sends the request again, with the input.
 */
import * as Schema from "effect/Schema"
import { essential, since } from "./Annotate.ts"
import { ElicitRequestParams, ElicitResult } from "./Elicitation.ts"
import { Meta, requestFields } from "./Message.ts"
import { ListRootsRequestParams, ListRootsResult } from "./Roots.ts"
import { CreateMessageRequestParams, CreateMessageResult } from "./Sampling.ts"

/** A request to the client's language model. */
export class CreateMessageRequest extends Schema.Opaque<CreateMessageRequest>()(Schema.Struct({
  method: Schema.Literal("sampling/createMessage"),
  params: CreateMessageRequestParams
})) {}

/** A request for the client's roots. */
export class ListRootsRequest extends Schema.Opaque<ListRootsRequest>()(Schema.Struct({
  method: Schema.Literal("roots/list"),
  params: Schema.optionalKey(ListRootsRequestParams)
})) {}

/** A request to the user. */
export class ElicitRequest extends Schema.Opaque<ElicitRequest>()(Schema.Struct({
  method: Schema.Literal("elicitation/create"),
  params: ElicitRequestParams
})) {}

/** One request for input. */
export const InputRequest = Schema.Union([CreateMessageRequest, ListRootsRequest, ElicitRequest])
export type InputRequest = typeof InputRequest.Type

/** Requests for input, by keys that the server chooses. */
export const InputRequests = Schema.Record(Schema.String, InputRequest)
export type InputRequests = typeof InputRequests.Type

/**
 * The response to one request for input. It does not name its request: decode it by the method of the request with the
 * same key.
 */
export const InputResponse = Schema.Union([CreateMessageResult, ListRootsResult, ElicitResult])
export type InputResponse = typeof InputResponse.Type

/** The responses, by the keys of the requests for input. */
export const InputResponses = Schema.Record(Schema.String, InputResponse)
export type InputResponses = typeof InputResponses.Type

/** The fields that the client adds to a request when it sends it again. */
export const inputResponseFields = {
  inputResponses: since("2026-07-28", Schema.optionalKey(InputResponses)),
  /** The `requestState` of the `InputRequiredResult`, unchanged. */
  requestState: since("2026-07-28", Schema.optionalKey(Schema.String))
}

/** The params of any request that may be sent again with input. */
export class InputResponseRequestParams extends Schema.Opaque<InputResponseRequestParams>()(Schema.Struct({
  ...requestFields,
  ...inputResponseFields
})) {}

/** The result that asks for input. It has `inputRequests`, `requestState` or both. */
export class InputRequiredResult extends Schema.Opaque<InputRequiredResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  resultType: Schema.Literal("input_required"),
  inputRequests: essential(Schema.optionalKey(InputRequests)),
  /** State for the client to return unchanged. The server must treat the returned text as untrusted input. */
  requestState: Schema.optionalKey(Schema.String)
})) {}
