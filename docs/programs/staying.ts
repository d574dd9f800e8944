import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import type { Transport } from "@skein/runtime/Connection"
import type * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

// #region reconnect
export const reconnecting = (transport: Transport) =>
  Client.make(transport, {
    reconnect: { initialDelay: "200 millis", maxAttempts: 20 },
    heartbeat: { interval: "30 seconds", timeout: "10 seconds" }
  })
// #endregion

export const watch = (client: Client.Client, show: (line: string) => Effect.Effect<void>) =>
  Stream.runForEach(client.status, (status) => {
    switch (status._tag) {
      case "Connected":
        return show(`Connected to ${status.info?.name}, ${status.revision}`)
      case "Reconnecting":
        return show(`Lost. Attempt ${status.attempt} in ${Math.round(status.delay)} ms`)
      case "Ended":
        return show(`Ended: ${status.end._tag}`)
    }
  })

// #region retry
export const pay = (client: Client.Client, invoice: string) =>
  // The call may reach the server twice. The key makes that harmless.
  client.callTool("pay", { invoice, idempotencyKey: invoice }, { retry: true })
// #endregion

export const startServer = (args: ReadonlyArray<string>, onStderr: (text: string) => void) =>
  Client.make(
    Stdio.transport({
      command: process.execPath,
      args,
      env: { TEA_TOKEN: "s3cret", TERM: undefined },
      stderr: onStderr,
      shutdownTimeout: "5 seconds"
    }),
    { reconnect: true }
  )
