/**
 * Capabilities: what each side can do.
 *
 * `extensions` is official since 2026-07-28, but has no window: peers negotiate extensions in older revisions too, and an
 * unknown member never hurts the others. What is not of its shape is ignored.
 */
import * as Schema from "effect/Schema"
import { field, only, since, until } from "./Annotate.ts"
import { AnyObject } from "./Common.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import type { Revision } from "./Revision.ts"

const settings = (value: unknown): { readonly [extension: string]: JsonObject } | undefined =>
  isObject(value) && Object.values(value).every(isObject)
    ? value as { readonly [extension: string]: JsonObject }
    : undefined

const flag = Schema.optionalKey(AnyObject)
const listChanged = { listChanged: Schema.optionalKey(Schema.Boolean) }
const open = {
  experimental: Schema.optionalKey(Schema.Record(Schema.String, AnyObject)),
  extensions: field(Schema.optionalKey(Schema.Record(Schema.String, AnyObject)), { lift: settings })
}
const taskFlags = { list: flag, cancel: flag }

/** What a client can do with tasks, in 2025-11-25. */
export class ClientTasksCapability extends Schema.Opaque<ClientTasksCapability>()(Schema.Struct({
  ...taskFlags,
  requests: Schema.optionalKey(Schema.Struct({
    sampling: Schema.optionalKey(Schema.Struct({ createMessage: flag })),
    elicitation: Schema.optionalKey(Schema.Struct({ create: flag }))
  }))
})) {}

/** What a server can do with tasks, in 2025-11-25. */
export class ServerTasksCapability extends Schema.Opaque<ServerTasksCapability>()(Schema.Struct({
  ...taskFlags,
  requests: Schema.optionalKey(Schema.Struct({
    tools: Schema.optionalKey(Schema.Struct({ call: flag }))
  }))
})) {}

/** How a client can elicit. With neither member it means forms. */
export class ElicitationCapability extends Schema.Opaque<ElicitationCapability>()(Schema.Struct({
  form: since("2025-11-25", flag),
  url: since("2025-11-25", flag)
})) {}

// An empty `elicitation` means forms in 2025-06-18: a client that knows URLs alone must not say it.
const lowerElicitation = (value: ElicitationCapability, revision: Revision): unknown =>
  revision < "2025-11-25" && value?.url !== undefined && value.form === undefined ? undefined : value

/** What a client can do. */
export class ClientCapabilities extends Schema.Opaque<ClientCapabilities>()(Schema.Struct({
  ...open,
  roots: Schema.optionalKey(Schema.Struct({ listChanged: until("2026-07-28", Schema.optionalKey(Schema.Boolean)) })),
  sampling: Schema.optionalKey(Schema.Struct({
    context: since("2025-11-25", flag),
    tools: since("2025-11-25", flag)
  })),
  elicitation: since("2025-06-18", Schema.optionalKey(ElicitationCapability), { lower: lowerElicitation }),
  tasks: only("2025-11-25", Schema.optionalKey(ClientTasksCapability))
})) {}

/** Whether a client can elicit in a mode. A client that names no mode means forms. */
export const elicits = ({ elicitation }: ClientCapabilities, mode: "form" | "url"): boolean =>
  elicitation !== undefined &&
  (elicitation[mode] !== undefined || (mode === "form" && elicitation.url === undefined))

/** What a server can do. */
export class ServerCapabilities extends Schema.Opaque<ServerCapabilities>()(Schema.Struct({
  ...open,
  logging: flag,
  completions: since("2025-03-26", flag),
  prompts: Schema.optionalKey(Schema.Struct(listChanged)),
  resources: Schema.optionalKey(Schema.Struct({ subscribe: Schema.optionalKey(Schema.Boolean), ...listChanged })),
  tools: Schema.optionalKey(Schema.Struct(listChanged)),
  tasks: only("2025-11-25", Schema.optionalKey(ServerTasksCapability))
})) {}
