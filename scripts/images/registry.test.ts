import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, it } from "vitest"
import { serveRegistry } from "./registry.ts"

const closers: Array<() => void> = []
afterEach(() => closers.splice(0).forEach((close) => close()))

/** A registry in front of one that answers its requests by `listener`. */
const serve = async (listener: RequestListener, attempts: number, timeout = 60_000) => {
  const behind = createServer(listener)
  await new Promise<void>((listening) => behind.listen(0, "127.0.0.1", listening))
  const upstream = `http://127.0.0.1:${(behind.address() as AddressInfo).port}/`
  const { server, url } = await serveRegistry([], upstream, { attempts, timeout, pause: 1 })
  closers.push(() => {
    for (const each of [behind, server]) {
      each.closeAllConnections()
      each.close()
    }
  })
  return url
}

it("asks again after an error and after silence, and stores the answer", async () => {
  let asked = 0
  const url = await serve(
    (_, response) => {
      asked++
      if (asked === 1) response.writeHead(503).end()
      if (asked >= 3) response.writeHead(200, { "content-type": "application/json" }).end("{}")
    },
    100,
    200
  )
  expect(await (await fetch(`${url}zod`)).text()).toBe("{}")
  const before = asked
  expect(await (await fetch(`${url}zod`)).text()).toBe("{}")
  expect(asked).toBe(before)
})

it("answers 502 after the last attempt, asks again for a further request, and passes on that a package is unknown", async () => {
  let asked = 0
  const url = await serve((_, response) => {
    asked++
    response.writeHead(asked > 3 ? 404 : 500).end()
  }, 3)
  expect((await fetch(`${url}zod`)).status).toBe(502)
  expect((await fetch(`${url}zod`)).status).toBe(404)
  expect(asked).toBe(4)
})
