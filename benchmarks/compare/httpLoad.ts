/**
 * Load on one HTTP server from raw sockets, which can start and stop within milliseconds. Each connection sends its
 * request, waits for the complete response, and sends it again.
 */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { HttpClient, textOf } from "../http/httpClient.ts"
import { messagesOf, type Operation, withId } from "../http/requests.ts"
import type { ServerProcess } from "../http/serverProcess.ts"
import { openSession } from "../http/throughput.ts"
import type { Era } from "../stdio/messages.ts"
import type { Version } from "./alternation.ts"

/** Opens the connections of a server, and checks one response completely. */
export const openLoad = async (
  server: ServerProcess,
  era: Era,
  operation: Operation,
  connections: number
): Promise<Version> => {
  const client = new HttpClient(server.port, 1)
  const requests: Array<string> = []
  let size = 0
  for (let index = 0; index < connections; index++) {
    const session = era === "session" ? await openSession(client) : undefined
    const request = withId(operation.request(era, session), 1_000_000 + index)
    if (index === 0) {
      const response = await client.send(request)
      operation.check(messagesOf(response))
      size = response.bytes
    }
    requests.push(textOf(server.port, request))
  }
  client.close()

  let active = false
  let pending = 0
  let completed = 0
  let onIdle = () => {}
  const sends = await Promise.all(requests.map(async (request) => {
    const socket: Socket = connect(server.port, "127.0.0.1").setNoDelay(true)
    await once(socket, "connect")
    const send = () => {
      pending++
      socket.write(request)
    }
    let received = 0
    socket.on("data", (data) => {
      received += data.length
      if (received < size) return
      received -= size
      pending--
      completed++
      if (active) send()
      else if (pending === 0) onIdle()
    })
    return send
  }))
  return {
    slice: async (millis) => {
      completed = 0
      active = true
      const begin = performance.now()
      const idle = new Promise<void>((resolve) => {
        onIdle = resolve
      })
      for (const send of sends) send()
      setTimeout(() => {
        active = false
      }, millis)
      await idle
      return completed / (performance.now() - begin)
    },
    close: () => server.stop()
  }
}
