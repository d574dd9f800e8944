import type * as Client from "@skein/client/Client"
import * as Progress from "@skein/client/Progress"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

// #region plain
export const order = (client: Client.Client, tea: string) =>
  Effect.map(client.callTool("order", { tea }), ({ content, isError }) => {
    const text = content.map((block) => block.type === "text" ? block.text : "").join("")
    return isError === true ? `The tool failed: ${text}` : text
  })
// #endregion

// #region typed
const Bill = Schema.Struct({ total: Schema.Finite })

export const total = (client: Client.Client, cups: number) =>
  client.callTool("bill", { tea: "oolong", cups }, { output: Bill, timeout: "10 seconds" }).pipe(
    Effect.map(({ total }) => `That is ${total}`),
    Effect.catchReason("ClientError", "ToolFailed", ({ message }) => Effect.succeed(`No bill: ${message}`))
  )
// #endregion

export const look = (client: Client.Client) =>
  Effect.gen(function*() {
    const { contents } = yield* client.readResource("notes://folders")
    const template = { type: "ref/resource", uri: "notes://{folder}/{index}" } as const
    const { completion } = yield* client.complete({ ref: template, argument: { name: "folder", value: "w" } })
    const first = yield* client.listResourcesPage()
    return { contents, folders: completion.values, more: first.nextCursor !== undefined }
  })

export const brew = (client: Client.Client, show: (line: string) => void) =>
  client.callTool("brew", {}, { onProgress: ({ progress, total, message }) => show(`${progress}/${total} ${message}`) })

export const brewing = (client: Client.Client) =>
  Progress.stream((onProgress) => client.callTool("brew", {}, { onProgress })).pipe(
    Stream.map((update) => update._tag === "Progress" ? update.message : update.result.content)
  )

export const unlessStopped = (client: Client.Client, stop: Effect.Effect<void>) =>
  Effect.raceFirst(
    Effect.as(client.callTool("wait"), "done"),
    Effect.as(stop, "stopped") // Interrupts the call, and notifies the server.
  )

// #region reason
export const find = (client: Client.Client, uri: string) =>
  Effect.map(client.readResource(uri), ({ contents }) => contents).pipe(
    Effect.catchReason(
      "ClientError",
      "ProtocolError",
      ({ error }, failure) => error.reason === "ResourceNotFound" ? Effect.succeed([]) : Effect.fail(failure)
    )
  )
// #endregion
