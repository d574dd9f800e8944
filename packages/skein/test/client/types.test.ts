/**
 * The types of the entry compared with those of `@skein/client`: a value of the core has the type of the entry where it is
 * returned, and a value of the entry has the type of the core where it is passed.
 */
import type * as CoreClient from "@skein/client/AsyncClient"
import type * as CorePool from "@skein/client/AsyncClientPool"
import type * as CoreChanges from "@skein/client/Changes"
import type * as CoreClientTypes from "@skein/client/Client"
import type * as CoreClientError from "@skein/client/ClientError"
import type * as CoreCredentials from "@skein/client/Credentials"
import type * as CoreElicitation from "@skein/client/Elicitation"
import type * as CoreHttp from "@skein/client/Http"
import type * as CoreMiddleware from "@skein/client/Middleware"
import type * as CoreNodeConfig from "@skein/client/NodeConfig"
import type * as CoreNodeHttp from "@skein/client/NodeHttp"
import type * as CoreNotification from "@skein/client/Notification"
import type * as CorePoolError from "@skein/client/PoolError"
import type * as CoreReconnect from "@skein/client/Reconnect"
import type * as CoreRemoteTask from "@skein/client/RemoteTask"
import type * as CoreCache from "@skein/client/ResponseCache"
import type * as CoreSampling from "@skein/client/Sampling"
import type * as CoreServerConfig from "@skein/client/ServerConfig"
import type { ServerProfile as CoreServerProfile } from "@skein/client/ServerProfile"
import type { Status as CoreStatus } from "@skein/client/Status"
import type * as CoreStdio from "@skein/client/Stdio"
import type * as CoreToolkit from "@skein/client/Toolkit"
import type { ServerCapabilities as CoreCapabilities } from "@skein/protocol/Capabilities"
import type { InputRequiredResult as CoreInputRequired } from "@skein/protocol/InputRequired"
import type { SessionEnd as CoreSessionEnd } from "@skein/runtime/Session"
import type * as CoreTransportError from "@skein/runtime/TransportError"
import * as Skein from "skein/client"
import { describe, expect, expectTypeOf, it } from "vitest"
import { z } from "zod"

/** Members of one type that the other lacks. */
type Lacking<One, Other> = Exclude<keyof One, keyof Other>

/** The options whose values are opaque, or have other types than in the core. */
type Opaque = "middleware" | "cache" | "credentials" | keyof Skein.ObservedClient

describe("values that the core returns have the types of the entry", () => {
  it("errors", () => {
    expectTypeOf<CoreClientError.ClientError>().toExtend<Skein.ClientError>()
    expectTypeOf<CoreClientError.Reason["_tag"]>().toEqualTypeOf<Skein.ClientErrorReason["_tag"]>()
    expectTypeOf<CorePoolError.PoolError>().toExtend<Skein.PoolError>()
    expectTypeOf<CorePoolError.Reason["_tag"]>().toEqualTypeOf<Skein.PoolErrorReason["_tag"]>()
    expectTypeOf<CoreTransportError.TransportError>().toExtend<Skein.TransportError>()
    expectTypeOf<CoreTransportError.Reason["_tag"]>().toEqualTypeOf<Skein.TransportErrorReason["_tag"]>()
    expectTypeOf<CoreSessionEnd>().toExtend<Skein.SessionEnd>()
    expectTypeOf<CoreReconnect.ReconnectExhausted>().toExtend<Skein.ReconnectExhausted>()
    expectTypeOf<CoreStdio.ServerExited>().toExtend<Skein.ServerExited>()
    expectTypeOf<CoreSampling.SamplingRefused>().toExtend<Skein.SamplingRefused>()
  })

  it("what the server has declared, and what is negotiated", () => {
    expectTypeOf<CoreCapabilities>().toExtend<Skein.ServerCapabilities>()
    expectTypeOf<CoreServerProfile>().toEqualTypeOf<Skein.ServerProfile>()
  })

  it("questions", () => {
    expectTypeOf<CoreElicitation.FormRequest>().toExtend<Skein.FormRequest>()
    expectTypeOf<CoreElicitation.UrlRequest>().toExtend<Skein.UrlRequest>()
    expectTypeOf<CoreSampling.Request>().toExtend<Skein.SamplingRequest>()
    expectTypeOf<CoreInputRequired>().toExtend<Skein.InputRequiredResult>()
  })

  it("changes, notifications and statuses", () => {
    expectTypeOf<CoreChanges.Change>().toExtend<Skein.Change>()
    expectTypeOf<CoreChanges.Change["_tag"]>().toEqualTypeOf<Skein.Change["_tag"]>()
    expectTypeOf<CoreNotification.Notification>().toExtend<Skein.Notification>()
    expectTypeOf<CoreNotification.Notification["_tag"]>().toEqualTypeOf<Skein.Notification["_tag"]>()
    expectTypeOf<CoreStatus>().toExtend<Skein.Status>()
    expectTypeOf<CoreStatus["_tag"]>().toEqualTypeOf<Skein.Status["_tag"]>()
  })

  it("tasks", () => {
    expectTypeOf<CoreClient.AsyncTask>().toExtend<Skein.RemoteTask>()
    expectTypeOf<CoreClient.AsyncStarted>().toExtend<Skein.Started>()
    expectTypeOf<CoreRemoteTask.State["status"]>().toEqualTypeOf<Skein.TaskState["status"]>()
    expectTypeOf<CoreRemoteTask.Handle>().toEqualTypeOf<Skein.TaskHandle>()
  })

  it("toolkits", () => {
    expectTypeOf<CorePool.AsyncToolkit>().toExtend<Skein.AsyncToolkit>()
    expectTypeOf<CoreClient.AsyncToolkit<undefined>>().toExtend<Skein.AsyncToolkit<undefined>>()
    expectTypeOf<Lacking<CorePool.AsyncToolkit, Skein.AsyncToolkit>>().toEqualTypeOf<never>()
    expectTypeOf<CoreToolkit.FittedSchema>().toExtend<Skein.FittedSchema>()
    expectTypeOf<CoreToolkit.SchemaForm>().toEqualTypeOf<Skein.SchemaForm>()
  })

  it("configurations", () => {
    expectTypeOf<CoreServerConfig.Entry>().toEqualTypeOf<Skein.ConfigEntry>()
    expectTypeOf<CoreServerConfig.Input>().toEqualTypeOf<Skein.ConfigInput>()
    expectTypeOf<CoreServerConfig.Reading>().toExtend<Skein.ReadConfig>()
    expectTypeOf<Lacking<CorePool.AsyncConfiguredPool["config"], Skein.AppliedConfig>>().toEqualTypeOf<never>()
  })

  it("the members of clients and pools", () => {
    expectTypeOf<keyof CoreClient.AsyncClient>().toEqualTypeOf<keyof Skein.AsyncClient | "requestAll">()
    expectTypeOf<keyof CorePool.PooledClient>().toEqualTypeOf<keyof Skein.PooledClient | "requestAll">()
    expectTypeOf<keyof CorePool.AsyncConfiguredPool>().toEqualTypeOf<keyof Skein.AsyncConfiguredPool>()
    expectTypeOf<Pick<CoreClient.AsyncClient, Exclude<keyof Skein.AsyncClient, "callTool">>>()
      .toExtend<Pick<Skein.AsyncClient, Exclude<keyof Skein.AsyncClient, "callTool">>>()
    type Of<Pool extends { readonly entries: unknown }> = Omit<
      Pool,
      "add" | "restart" | "config" | "client" | "entries" | "states"
    >
    expectTypeOf<Of<CorePool.AsyncConfiguredPool>>().toExtend<Of<Skein.AsyncConfiguredPool>>()
    type StateOf<State> = Exclude<State, { readonly _tag: "Open" }>
    expectTypeOf<StateOf<CorePool.State>>().toExtend<StateOf<Skein.PoolState>>()
    expectTypeOf<CorePool.State["_tag"]>().toEqualTypeOf<Skein.PoolState["_tag"]>()
  })
})

describe("values of the entry have the types of the core where they are passed", () => {
  it("options of clients", () => {
    expectTypeOf<Omit<Skein.ConnectOptions, Opaque>>().toExtend<Omit<CoreClient.Options, Opaque>>()
    expectTypeOf<Exclude<keyof Skein.ConnectOptions, Opaque>>()
      .toEqualTypeOf<Exclude<keyof CoreClient.Options, Opaque | "services">>()
    expectTypeOf<Omit<Skein.SharedCacheOptions, "store">>().toExtend<Omit<CoreCache.SharedOptions, "store">>()
    expectTypeOf<Skein.OwnCacheOptions>().toExtend<CoreCache.OwnOptions>()
    expectTypeOf<keyof Skein.ClientLimits>().toEqualTypeOf<keyof CoreClientTypes.Limits>()
    expectTypeOf<keyof Skein.ReconnectPolicy>().toEqualTypeOf<keyof CoreReconnect.Policy>()
  })

  it("options of calls", () => {
    type Internal = "onNotification"
    expectTypeOf<Skein.RequestOptions>().toExtend<CoreClient.AsyncRequestOptions>()
    expectTypeOf<keyof Skein.RequestOptions | Internal>().toEqualTypeOf<keyof CoreClient.AsyncRequestOptions>()
    expectTypeOf<Skein.CallToolOptions>().toExtend<CoreClient.AsyncCallOptions>()
    expectTypeOf<keyof Skein.TaskOptions>().toEqualTypeOf<keyof CoreRemoteTask.TaskOptions>()
    expectTypeOf<Skein.CompleteOptions>().toExtend<CoreClientTypes.CompleteOptions>()
    expectTypeOf<Skein.PingOptions>().toExtend<CoreClientTypes.PingOptions>()
    expectTypeOf<Skein.ResumeOptions>().toExtend<CoreRemoteTask.ResumeOptions>()
    expectTypeOf<Skein.ChangesFilter>().toEqualTypeOf<CoreChanges.Filter>()
    expectTypeOf<Skein.ChangesOptions>().toExtend<CoreChanges.Options>()
    expectTypeOf<Skein.ToolkitOptions>().toExtend<CorePool.ToolkitOptions>()
    expectTypeOf<keyof Skein.ToolkitOptions>().toEqualTypeOf<keyof CorePool.ToolkitOptions>()
  })

  it("options of transports", () => {
    expectTypeOf<Omit<Skein.HttpOptions, Opaque>>().toExtend<Omit<CoreHttp.Options, Opaque>>()
    expectTypeOf<keyof Skein.HttpOptions>().toEqualTypeOf<keyof CoreHttp.Options>()
    expectTypeOf<Omit<Skein.NodeHttpOptions, Opaque>>().toExtend<Omit<CoreNodeHttp.Options, Opaque>>()
    expectTypeOf<keyof Skein.NodeHttpOptions>().toEqualTypeOf<keyof CoreNodeHttp.Options>()
    expectTypeOf<Skein.StdioOptions>().toExtend<CoreStdio.Options>()
    expectTypeOf<keyof Skein.StdioOptions>().toEqualTypeOf<keyof CoreStdio.Options>()
    expectTypeOf<Skein.StdioOptions["stderr"]>().toEqualTypeOf<CoreStdio.Options["stderr"]>()
  })

  it("options of pools and configurations", () => {
    expectTypeOf<Omit<Skein.PoolConfigOptions, Opaque>>().toExtend<Omit<CorePool.ConfigOptions, Opaque>>()
    expectTypeOf<Exclude<keyof Skein.PoolConfigOptions, Opaque>>()
      .toEqualTypeOf<Exclude<keyof CorePool.ConfigOptions, Opaque | "services">>()
    expectTypeOf<keyof Skein.ConfigFileOptions>().toEqualTypeOf<keyof CoreNodeConfig.FileOptions>()
    type Converted = "client" | "http"
    expectTypeOf<Omit<Skein.ConfigFileOptions, Converted>>().toExtend<Omit<CoreNodeConfig.FileOptions, Converted>>()
    expectTypeOf<keyof Skein.ReadConfigOptions>().toEqualTypeOf<keyof CoreServerConfig.Options>()
  })

  it("functions", () => {
    expectTypeOf<Skein.CredentialsFunctions>().toExtend<CoreCredentials.AsyncCredentials>()
    expectTypeOf<keyof Skein.CredentialsFunctions>().toEqualTypeOf<keyof CoreCredentials.AsyncCredentials>()
    expectTypeOf<Skein.ResponseStoreFunctions>().toExtend<CoreCache.AsyncStore>()
    expectTypeOf<Omit<CoreMiddleware.Call, "options">>().toExtend<Omit<Skein.Call, "options">>()
    // The durations of a call are those that the program has passed.
    type Timeouts = "timeout" | "maxTimeout"
    expectTypeOf<Omit<CoreMiddleware.Call["options"], Timeouts>>().toExtend<Omit<Skein.Call["options"], Timeouts>>()
    expectTypeOf<Lacking<CoreMiddleware.Call, Skein.Call>>().toEqualTypeOf<never>()
  })
})

describe("the types as a user writes them", () => {
  it("infers the result of a call, and refuses wrong options", () => {
    const write = async (client: Skein.AsyncClient) => {
      const { sum } = await client.callTool("add", { a: 1 }, { output: z.object({ sum: z.number() }) })
      expectTypeOf(sum).toEqualTypeOf<number>()
      const { content } = await client.callTool("add")
      expectTypeOf(content).toEqualTypeOf<ReadonlyArray<Skein.ContentBlock>>()
      // @ts-expect-error: the unit is missing
      await client.listTools({ timeout: "10" })
      // @ts-expect-error: no such level
      await client.setLoggingLevel("loud")
      for await (const change of client.changes({ tools: true })) {
        if (change._tag === "ResourceUpdated") expectTypeOf(change.uri).toEqualTypeOf<string>()
      }
    }
    expect(write).toBeTypeOf("function")
  })

  it("refuses wrong answers of handlers", () => {
    const options: Skein.ConnectOptions = {
      // @ts-expect-error: an accepted form has content
      elicit: () => ({ action: "accept" }),
      // @ts-expect-error: no such action
      elicitUrl: async () => ({ action: "yes" }),
      // @ts-expect-error: a root is an object
      roots: ["file:///tmp"],
      // @ts-expect-error: a middleware is made by `middleware`
      middleware: [async (call: Skein.Call, next: () => unknown) => next()]
    }
    expect(options).toBeTypeOf("object")
  })

  it("narrows errors by their reasons", () => {
    const read = (error: unknown) => {
      if (error instanceof Skein.ClientError && error.reason._tag === "ProtocolError") {
        expectTypeOf(error.reason.error.message).toEqualTypeOf<string>()
      }
      if (error instanceof Skein.PoolError && error.reason._tag === "ToolNotFound") {
        expectTypeOf(error.reason.tool).toEqualTypeOf<string>()
      }
    }
    expect(read).toBeTypeOf("function")
  })
})
