/** The types of `skein` are those of `@skein/server` without Effect: options are accepted there, and contexts come from there. */
import { describe, expectTypeOf, it } from "@effect/vitest"
import type * as JsonForm from "@skein/protocol/JsonForm"
import type * as AuditLog from "@skein/server/AuditLog"
import type * as Caching from "@skein/server/Caching"
import type * as CatalogTools from "@skein/server/CatalogTools"
import type * as Concurrency from "@skein/server/Concurrency"
import type * as Content from "@skein/server/Content"
import type * as Cors from "@skein/server/Cors"
import type * as Elicitation from "@skein/server/Elicitation"
import type * as ErrorMapping from "@skein/server/ErrorMapping"
import type * as EventBus from "@skein/server/EventBus"
import type * as CoreContext from "@skein/server/HandlerContext"
import type * as JsonSchema from "@skein/server/JsonSchema"
import type * as LegacySse from "@skein/server/LegacySse"
import type * as Limits from "@skein/server/Limits"
import type * as Logging from "@skein/server/Logging"
import type * as MaxResponseSize from "@skein/server/MaxResponseSize"
import type * as McpServer from "@skein/server/McpServer"
import type * as Middleware from "@skein/server/Middleware"
import type * as NodeBridge from "@skein/server/NodeBridge"
import type * as NodeHttp from "@skein/server/NodeHttp"
import type * as PerSession from "@skein/server/PerSession"
import type * as Prompt from "@skein/server/Prompt"
import type * as RateLimit from "@skein/server/RateLimit"
import type * as RequestState from "@skein/server/RequestState"
import type * as Resource from "@skein/server/Resource"
import type * as ResourceTemplate from "@skein/server/ResourceTemplate"
import type * as ResultCache from "@skein/server/ResultCache"
import type * as Retry from "@skein/server/Retry"
import type * as Sampling from "@skein/server/Sampling"
import type * as ServerCard from "@skein/server/ServerCard"
import type * as SqlStateStore from "@skein/server/SqlStateStore"
import type * as State from "@skein/server/State"
import type * as StateStore from "@skein/server/StateStore"
import type * as Stdio from "@skein/server/Stdio"
import type * as Timeout from "@skein/server/Timeout"
import type * as Tool from "@skein/server/Tool"
import type * as ToolSearch from "@skein/server/ToolSearch"
import type * as Transform from "@skein/server/Transform"
import type * as WebHttp from "@skein/server/WebHttp"
import type * as Plain from "skein"
import type * as PlainHttp from "skein/http"

/** A type of this package, the one that it stands for, and the members that differ on purpose. */
interface Options {
  readonly Around: [Plain.ToolInfo, Middleware.ToolInfo, "metadata"]
  readonly ArgumentChange: [Plain.ArgumentChange, Transform.ArgumentChange, never]
  readonly AuditLogOptions: [Plain.AuditLogOptions, AuditLog.Options<never>, "sink" | "arguments"]
  readonly BlockOptions: [Plain.BlockOptions, Content.BlockOptions, never]
  readonly BridgeOptions: [
    PlainHttp.BridgeOptions,
    NodeBridge.Options,
    "connect" | "cors" | "legacySse" | "nodeRequests" | "pages" | "protection" | "routes" | "serverCard"
  ]
  readonly CachingHint: [Plain.CachingHint, Caching.Hint, never]
  readonly CachingHints: [Plain.CachingHints, Caching.Methods, never]
  readonly CatalogToolsOptions: [Plain.CatalogToolsOptions, CatalogTools.Options, never]
  readonly ClientLogOptions: [Plain.ClientLogOptions, Logging.Options, never]
  readonly ConcurrencyOptions: [Plain.ConcurrencyOptions, Concurrency.Options, "key"]
  readonly ConnectionLimits: [Plain.ConnectionLimits, Limits.Limits, never]
  readonly CorsOptions: [Plain.CorsOptions, Cors.Options, never]
  readonly ErrorMappingOptions: [Plain.ErrorMappingOptions, ErrorMapping.Options, "map" | "tools"]
  readonly HealthOptions: [Plain.HealthOptions, NodeHttp.Health, never]
  readonly HttpLimits: [Plain.HttpLimits, NodeHttp.Limits, never]
  readonly HttpMainOptions: [
    Plain.HttpMainOptions,
    NodeHttp.MainOptions,
    "cors" | "legacySse" | "loggers" | "nodeRequests" | "onListening" | "pages" | "protection" | "routes" | "serverCard"
  ]
  readonly HttpOptions: [
    Plain.HttpOptions,
    NodeHttp.Options,
    "cors" | "legacySse" | "nodeRequests" | "pages" | "protection" | "routes" | "serverCard"
  ]
  readonly JsonSchemaOptions: [Plain.JsonSchemaOptions, JsonSchema.Options, never]
  readonly LegacySseOptions: [Plain.LegacySseOptions, LegacySse.Options, never]
  readonly MaxResponseSizeOptions: [Plain.MaxResponseSizeOptions, MaxResponseSize.Options, never]
  readonly MemoryStateOptions: [Plain.MemoryStateOptions, StateStore.MemoryOptions, never]
  readonly MountOptions: [Plain.MountOptions, McpServer.MountOptions, never]
  readonly PerSessionOptions: [Plain.PerSessionOptions<string>, PerSession.Options, "acquire" | "release"]
  readonly PromptOptions: [Plain.PromptOptions, Prompt.Options<{}>, "visible"]
  readonly RateLimitOptions: [Plain.RateLimitOptions, RateLimit.Options, "key" | "store"]
  readonly RequestStateOptions: [Plain.RequestStateOptions, RequestState.Options, never]
  readonly ResourceOptions: [Plain.ResourceOptions, Resource.Options, "visible"]
  readonly ResultCacheOptions: [Plain.ResultCacheOptions, ResultCache.Options, "resources" | "tools"]
  readonly RetryOptions: [Plain.RetryOptions, Retry.Options, "delay" | "maxDelay" | "schedule" | "tools" | "when"]
  readonly SampleOptions: [Plain.SampleOptions, Sampling.Options, CallOptions]
  readonly ElicitUrlOptions: [Plain.ElicitUrlOptions, Elicitation.UrlOptions, Exclude<CallOptions, "acceptUnsolicited">]
  readonly ServerCardOptions: [Plain.ServerCardOptions, ServerCard.Options, never]
  readonly ServerChange: [Plain.ServerChange, EventBus.Change, never]
  readonly ServerOptions: [Plain.ServerOptions, McpServer.Options, "level" | "logger" | "telemetry"]
  readonly StateOptions: [Plain.StateOptions<string>, State.Options<string>, "schema"]
  readonly StateKey: [Plain.StateKey, StateStore.Key, never]
  readonly StateTableOptions: [Plain.StateTableOptions, SqlStateStore.Options, never]
  readonly StdioOptions: [Plain.StdioOptions, Stdio.MainOptions, "loggers"]
  readonly TemplateOptions: [Plain.TemplateOptions, ResourceTemplate.Options<never>, "visible"]
  readonly TimeoutOptions: [Plain.TimeoutOptions, Timeout.Options, never]
  readonly ToolChange: [Plain.ToolChange, Transform.ToolChange, never]
  readonly ToolOptions: [Plain.ToolOptions, Tool.Options<{}, never>, "listedAs" | "metadata" | "visible"]
  readonly ToolSearchOptions: [Plain.ToolSearchOptions, ToolSearch.Options, "always"]
  readonly ToolSelection: [Plain.ToolSelection, Transform.Selection, never]
  readonly TransformOptions: [Plain.TransformOptions, Transform.Options, "each"]
  readonly WebOptions: [
    PlainHttp.WebOptions,
    WebHttp.Options,
    "cors" | "legacySse" | "pages" | "protection" | "serverCard"
  ]
}

/** Options of calls that a handler has no use for. */
type CallOptions = "acceptUnsolicited" | "headers" | "maxTimeout" | "onNotification" | "onProgress" | "onSend" | "to"

/** The name of an option that the core does not take, or that has another type there. */
type Refused = {
  readonly [Name in keyof Options]: Options[Name] extends [infer A, infer B, infer Ignored]
    ? Omit<A, Ignored & string> extends Omit<B, Ignored & string> ? never : Name
    : never
}[keyof Options]

/** The name of a member that one of the types lacks. */
type Different = {
  readonly [Name in keyof Options]: Options[Name] extends [infer A, infer B, infer Ignored]
    ? `${Name}.${Exclude<keyof A | keyof B, (keyof A & keyof B) | Ignored> & string}`
    : never
}[keyof Options]

describe("options", () => {
  it("are accepted by the core, and have its members", () => {
    expectTypeOf<Refused>().toEqualTypeOf<never>()
    expectTypeOf<Different>().toEqualTypeOf<never>()
  })
})

describe("the context of a handler", () => {
  it("has the members of the core's, except for the one that runs effects", () => {
    expectTypeOf<Exclude<keyof CoreContext.HandlerContext, keyof Plain.HandlerContext>>().toEqualTypeOf<"run">()
    expectTypeOf<Exclude<keyof Plain.HandlerContext, keyof CoreContext.HandlerContext>>().toEqualTypeOf<never>()
    type Same = Exclude<keyof Plain.HandlerContext, "elicit" | "once" | "request" | "state" | "use">
    type Core = Pick<CoreContext.HandlerContext, Same>
    expectTypeOf<Core extends Pick<Plain.HandlerContext, Same> ? true : false>().toEqualTypeOf<true>()
    expectTypeOf<ReturnType<CoreContext.HandlerContext["state"]>>().toExtend<Plain.StateOperations<unknown>>()
  })

  it("has the request of the core", () => {
    type Request = CoreContext.HandlerContext["request"]
    expectTypeOf<Omit<Request, "original" | "with">>().toExtend<
      Omit<Plain.McpRequest, "caller" | "original" | "with">
    >()
    expectTypeOf<Omit<Request["caller"], "info">>().toExtend<Omit<Plain.Caller, "info">>()
  })
})

describe("the result of once", () => {
  it("has the same type", () => {
    interface Mixed {
      readonly at: Date
      readonly run: () => void
      readonly list: ReadonlyArray<{ readonly map: Map<string, string> } | undefined>
    }
    expectTypeOf<Plain.JsonForm<Mixed>>().toEqualTypeOf<JsonForm.JsonForm<Mixed>>()
    expectTypeOf<Plain.CheckedJson<Mixed>>().toEqualTypeOf<JsonForm.Checked<Mixed>>()
    expectTypeOf<Plain.CheckedJson<Date>>().toEqualTypeOf<JsonForm.Checked<Date>>()
  })
})

describe("the entries of an audit log", () => {
  it("are those of the core", () => {
    expectTypeOf<AuditLog.Entry>().toExtend<Plain.AuditEntry>()
    expectTypeOf<Plain.AuditEntry>().toExtend<AuditLog.Entry>()
  })
})
