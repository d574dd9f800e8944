/** Helpers of the tests of code mode: an office with two tools, and the results of programs. */
import * as CodeMode from "@skein/code-mode/CodeMode"
import { VisibleError } from "@skein/server/HandlerError"
import type * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as server from "../../server/test/kit.ts"
import { FixedBounds } from "../src/internal/sandbox/program.ts"

export const eras = ["2025-11-25", "2026-07-28"] as const

export const orders = Tool.layer(
  Tool.make("list_orders", {
    description: "Lists the orders of a customer",
    input: { customer: Schema.String },
    output: { orders: Schema.Array(Schema.Struct({ id: Schema.String, total: Schema.Finite })) },
    annotations: { readOnlyHint: true }
  }),
  ({ customer }) =>
    Effect.succeed({ orders: [{ id: `${customer}-1`, total: 10 }, { id: `${customer}-2`, total: 5.5 }] })
)

export const greet = Tool.layer(
  Tool.make("greet", { input: { name: Schema.String } }),
  ({ name }) => name === "nobody" ? Effect.fail(new VisibleError("There is nobody")) : Effect.succeed(`Hello ${name}`)
)

export const office = (
  options: CodeMode.Options = {},
  ...more: ReadonlyArray<McpServer.Definitions>
): server.Server => server.server(CodeMode.layer(options, orders, greet, ...more)) as server.Server

/** A server whose fixed bounds are smaller. */
export const withFixed = (bounds: Partial<FixedBounds>, built: server.Server = office()): server.Server =>
  Layer.provide(built, Layer.effect(FixedBounds, Effect.map(FixedBounds, (fixed) => ({ ...fixed, ...bounds }))))

export const namesOf = ({ tools }: server.Json): ReadonlyArray<string> => tools.map(({ name }: server.Json) => name)

/** The value that a program returned. Throws its error. */
export const resultOf = (result: server.Json): unknown => {
  if (result.isError === true) throw new Error(result.content[0].text)
  return result.structuredContent.result
}

/** The error of a program. */
export const failureOf = ({ content, isError }: server.Json): string => {
  if (isError !== true) throw new Error(`the program succeeded: ${content[0].text}`)
  return content[0].text
}

/** Runs a program, and returns its value. */
export const program = (client: server.Client, code: string): Effect.Effect<unknown> =>
  Effect.map(client.call("execute", { code }), resultOf)

/** Runs a program, and returns its error. */
export const failing = (client: server.Client, code: string): Effect.Effect<string> =>
  Effect.map(client.call("execute", { code }), failureOf)
