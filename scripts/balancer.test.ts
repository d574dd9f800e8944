import { createServer, type RequestListener, type ServerOptions } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, it } from "vitest"
import { type Balancer, startBalancer } from "./balancer.ts"
import { freePort } from "./freePort.ts"

const closes: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closes.splice(0)) await close()
})

const serve = async (handle: RequestListener, options: ServerOptions = {}): Promise<number> => {
  const server = createServer(options, handle)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closes.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

const balance = async (...ports: Array<number>): Promise<Balancer & { readonly url: string }> => {
  const balancer = await startBalancer(ports)
  closes.push(balancer.close)
  return { ...balancer, url: `http://127.0.0.1:${balancer.port}/path` }
}

it("gives each request to the next server, and skips one that refuses the connection", async () => {
  const named = (name: string) =>
    serve(async (request, response) => {
      let body = ""
      for await (const chunk of request) body += chunk
      response.end(`${name} ${request.method} ${request.url} ${request.headers["x-a"]} ${body}`)
    })
  const { lost, statuses, url } = await balance(await named("a"), await freePort(), await named("b"))
  const answers: Array<string> = []
  for (const body of ["é1", "2", "3"]) {
    answers.push(await (await fetch(url, { method: "POST", headers: { "x-a": "x" }, body })).text())
  }
  expect(answers).toEqual(["a POST /path x é1", "b POST /path x 2", "a POST /path x 3"])
  expect([statuses, lost]).toEqual([[200, 200, 200], []])
})

it("lets its clients close idle connections, and does not forward the Keep-Alive of a server", async () => {
  const heads: Array<unknown> = []
  const port = await serve((request, response) => {
    heads.push(request.headers.connection)
    response.end()
  }, { keepAliveTimeout: 65_000 })
  const { headers } = await fetch((await balance(port)).url)
  expect([headers.get("connection"), headers.get("keep-alive")]).toEqual(["keep-alive", null])
  expect(heads).toEqual(["close"])
})

it("reports the requests whose server has ended before its answer was complete, and not those of a client that has left", async () => {
  const sent: Array<() => void> = []
  const port = await serve((request, response) => {
    if (request.url === "/path?begun") response.write("begun")
    else if (request.url === "/path?waits") return void sent.shift()!()
    setImmediate(() => request.socket.destroy())
  })
  const { lost, url } = await balance(port)
  await expect(fetch(url, { method: "POST", body: "a" })).rejects.toThrow(/fetch failed|terminated|aborted/)
  await expect(fetch(`${url}?begun`).then((response) => response.text())).rejects.toThrow(
    /fetch failed|terminated|aborted/
  )
  const controller = new AbortController()
  sent.push(() => controller.abort())
  await expect(fetch(`${url}?waits`, { signal: controller.signal })).rejects.toThrow(/fetch failed|terminated|aborted/)
  await expect(fetch(url, { method: "POST", body: "b" })).rejects.toThrow(/fetch failed|terminated|aborted/)
  expect(lost).toEqual([
    { port, method: "POST", body: "a" },
    { port, method: "GET", body: "" },
    { port, method: "POST", body: "b" }
  ])
})
