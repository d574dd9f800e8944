/**
 * Multi round-trip requests, since 2026-07-28: instead of its result a request is answered with what the server needs to
 * know first, and is sent again with the answers.
 */
import * as Schema from "effect/Schema"
import { since } from "./Annotate.ts"
import { Meta, requestFields } from "./Common.ts"
import { ElicitRequestParams, ElicitResult } from "./Elicitation.ts"
import { ListRootsRequestParams, ListRootsResult } from "./Roots.ts"
import { CreateMessageRequestParams, CreateMessageResult } from "./Sampling.ts"

/** Asks the client's language model. */
export class CreateMessageRequest extends Schema.Opaque<CreateMessageRequest>()(Schema.Struct({
  method: Schema.Literal("sampling/createMessage"),
  params: CreateMessageRequestParams
})) {}

/** Asks for the client's roots. */
export class ListRootsRequest extends Schema.Opaque<ListRootsRequest>()(Schema.Struct({
  method: Schema.Literal("roots/list"),
  params: Schema.optionalKey(ListRootsRequestParams)
})) {}

/** Asks the user. */
export class ElicitRequest extends Schema.Opaque<ElicitRequest>()(Schema.Struct({
  method: Schema.Literal("elicitation/create"),
  params: ElicitRequestParams
})) {}

/** One question to the client. */
export const InputRequest = Schema.Union([CreateMessageRequest, ListRootsRequest, ElicitRequest])
export type InputRequest = typeof InputRequest.Type

/** Questions to the client, by keys of the server's choice. */
export const InputRequests = Schema.Record(Schema.String, InputRequest)
export type InputRequests = typeof InputRequests.Type

/** One answer. Nothing in it says which question it answers: read it by the question's method, under the same key. */
export const InputResponse = Schema.Union([CreateMessageResult, ListRootsResult, ElicitResult])
export type InputResponse = typeof InputResponse.Type

/** Answers, by the keys of the questions. */
export const InputResponses = Schema.Record(Schema.String, InputResponse)
export type InputResponses = typeof InputResponses.Type

/** The fields with which a request is sent again. */
export const inputResponseFields = {
  inputResponses: since("2026-07-28", Schema.optionalKey(InputResponses)),
  /** What the server gave, unchanged. */
  requestState: since("2026-07-28", Schema.optionalKey(Schema.String))
}

/** The params of any request that may be sent again with answers. */
export class InputResponseRequestParams extends Schema.Opaque<InputResponseRequestParams>()(Schema.Struct({
  ...requestFields,
  ...inputResponseFields
})) {}

/** Instead of a result: what the server needs to know first. One of `inputRequests` and `requestState` must be there. */
export class InputRequiredResult extends Schema.Opaque<InputRequiredResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  resultType: Schema.Literal("input_required"),
  inputRequests: Schema.optionalKey(InputRequests),
  /** For the client to send back, unchanged. It must be taken as written by an attacker when it comes back. */
  requestState: Schema.optionalKey(Schema.String)
})) {}
