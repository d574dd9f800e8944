/** The official definitions that are requests, notifications and responses, built from the method table. */
import * as Schema from "effect/Schema"
import type * as AST from "effect/SchemaAST"
import { ClientCapabilities } from "@skein/protocol/Capabilities"
import { URLElicitationRequiredErrorData } from "@skein/protocol/Elicitation"
import { InputRequiredResult } from "@skein/protocol/InputRequired"
import { EmptyResult, NotificationParams, RequestId, RequestParams } from "@skein/protocol/Message"
import * as Method from "@skein/protocol/Method"
import { PaginatedRequestParams } from "@skein/protocol/Pagination"
import { CancelledNotificationParams } from "@skein/protocol/Progress"
import { RequestMetaObject } from "@skein/protocol/Stamp"
import { latest, type Revision, within } from "@skein/protocol/Revision"

/** A revision, or `tasks` for the extension `io.modelcontextprotocol/tasks`, which has its own official schema. */
export type Source = Revision | "tasks"

type AnySchema = Schema.Codec<unknown>
type Entry = readonly [name: string, schema: AnySchema]

const jsonrpc = Schema.Literal("2.0")

const hasFields = (schema: object): schema is { readonly fields: Schema.Struct.Fields } => "fields" in schema

/**
 * Whether the official schemas allow the params to be absent: they have no required member. Of a cancellation they do
 * not.
 */
const mayBeAbsent = (ast: AST.AST): boolean =>
  ast !== CancelledNotificationParams.ast && ast._tag === "Objects" &&
  ast.propertySignatures.every(({ type }) => type.context?.isOptional === true)

/** The params with the `_meta` that every request carries since 2026-07-28. */
export const withRequestMeta = (params: object): AnySchema =>
  (hasFields(params) ? Schema.Struct({ ...params.fields, _meta: RequestMetaObject }) : params) as unknown as AnySchema

const envelope = (
  source: Source,
  kind: "request" | "notification" | "input",
  method: Schema.Codec<string>,
  params: AnySchema
): AnySchema => {
  const head = source < "2025-11-25" || kind === "input"
    ? {}
    : kind === "request"
    ? { jsonrpc, id: RequestId }
    : { jsonrpc }
  const stamped = kind === "request" && source === latest ? withRequestMeta(params) : params
  const fields = { ...head, method, params: mayBeAbsent(stamped.ast) ? Schema.optionalKey(stamped) : stamped }
  return Schema.Struct(fields) as unknown as AnySchema
}

const isMethod = (value: unknown): value is Method.AnyRequest | Method.AnyNotification =>
  typeof value === "object" && value !== null && "kind" in value

/** The methods by their official names: the names in the table without `Legacy`. */
const named: ReadonlyArray<readonly [string, Method.AnyRequest | Method.AnyNotification]> = Object.entries(Method)
  .flatMap(
    ([name, value]) => isMethod(value) ? [[name.replace("Legacy", ""), value] as const] : []
  )

const error = (fields: Schema.Struct.Fields): AnySchema =>
  Schema.Struct({
    jsonrpc,
    id: Schema.optionalKey(RequestId),
    error: Schema.Struct({ message: Schema.String, ...fields })
  }) as unknown as AnySchema

/** The official shape, in which `resultType` is any string. `Codec` uses the schema only for `input_required`. */
export const AnyInputRequiredResult = Schema.Struct({ ...InputRequiredResult.fields, resultType: Schema.String })

/** The official definitions of error responses. */
const errors = (source: Source): ReadonlyArray<Entry> => {
  if (source === "2025-11-25") {
    const data = URLElicitationRequiredErrorData
    return [["URLElicitationRequiredError", error({ code: Schema.Literal(-32042), data })]]
  }
  if (source !== latest) return []
  const data = Schema.Struct({ requiredCapabilities: ClientCapabilities })
  const versions = Schema.Struct({ supported: Schema.Array(Schema.String), requested: Schema.String })
  return [
    ["HeaderMismatchError", error({ code: Schema.Literal(-32020) })],
    ["MissingRequiredClientCapabilityError", error({ code: Schema.Literal(-32021), data })],
    ["UnsupportedProtocolVersionError", error({ code: Schema.Literal(-32022), data: versions })]
  ]
}

const union = (members: ReadonlyArray<AnySchema>): AnySchema => Schema.Union(members) as unknown as AnySchema

/** Whether a side sends a message in a revision. */
const sentBy = (method: Method.AnyRequest | Method.AnyNotification, side: Method.Side, revision: Revision): boolean =>
  ["both", side].includes(Method.sender(method, revision))

/** Returns the requests, notifications and responses of a source, by their official names. */
export const messages = (source: Source): Iterable<Entry> => {
  const revision: Revision = source === "tasks" ? latest : source
  const entries: Array<Entry> = []
  const requests = { client: new Array<AnySchema>(), server: new Array<AnySchema>() }
  const results = { client: new Array<AnySchema>(), server: new Array<AnySchema>() }
  const notifications = { client: new Array<AnySchema>(), server: new Array<AnySchema>() }
  for (const [name, method] of named) {
    const exists = within(revision, method.since, method.until)
    const literal = Schema.Literal(method.name)
    const params = method.params as AnySchema
    const ofSource = (method.extension !== undefined) === (source === "tasks")
    if (method.kind === "notification") {
      if (!exists || !ofSource) continue
      const schema = envelope(source, "notification", literal, params)
      entries.push([`${name}Notification`, schema])
      for (const side of ["client", "server"] as const) {
        if (sentBy(method, side, revision)) notifications[side].push(schema)
      }
      continue
    }
    const result = method.result as AnySchema
    const input = revision === latest && method.asInput
    if (!input && !(exists && ofSource)) continue
    const schema = envelope(source, input ? "input" : "request", literal, params)
    entries.push([`${name}Request`, schema])
    const hasResult = method.result !== EmptyResult as unknown
    if (hasResult) entries.push([`${name}Result`, result])
    if (input) continue
    for (const side of ["client", "server"] as const) {
      if (!sentBy(method, side, revision)) continue
      requests[side].push(schema)
      if (hasResult) results[side === "client" ? "server" : "client"].push(result)
    }
    if (source === latest) {
      const response = method.inputRequired ? union([result, AnyInputRequiredResult as unknown as AnySchema]) : result
      entries.push([
        `${name}ResultResponse`,
        Schema.Struct({ jsonrpc, id: RequestId, result: response }) as unknown as AnySchema
      ])
    }
  }
  if (source === "tasks") return entries
  const any = EmptyResult as unknown as AnySchema
  if (source === latest) results.server.push(AnyInputRequiredResult as unknown as AnySchema)
  entries.push(
    ["ClientRequest", union(requests.client)],
    ["ClientNotification", union(notifications.client)],
    ["ServerNotification", union(notifications.server)],
    ["ClientResult", union([...results.client, any])],
    ["ServerResult", union([...results.server, any])],
    ["Request", Schema.Struct({ method: Schema.String, params: Schema.optionalKey(RequestParams) })],
    ["Notification", Schema.Struct({ method: Schema.String, params: Schema.optionalKey(NotificationParams) })],
    ["PaginatedRequest", envelope(source, "request", Schema.String, PaginatedRequestParams as unknown as AnySchema)],
    ...errors(source)
  )
  if (source !== latest) entries.push(["ServerRequest", union(requests.server)])
  return entries
}
