import * as Client from "@skein/client/Client"
import * as Telemetry from "@skein/client/Telemetry"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"

export const traced = (transport: Transport) =>
  Client.make(transport, { telemetry: Telemetry.make({ attributes: { "server.address": "example.com" } }) })

export const tracedTo = (baseUrl: string) =>
  Layer.provide(Otlp.layerJson({ baseUrl, resource: { serviceName: "my-host" } }), FetchHttpClient.layer)

export const turn = (client: Client.Client) => Effect.withSpan(client.callTool("greet", { name: "Ada" }), "turn")
