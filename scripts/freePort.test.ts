import { createServer } from "node:net"
import { expect, it } from "vitest"
import { freePort } from "./freePort.ts"

it("returns ports on which a server can listen, and that no listener without a port gets", async () => {
  const ports = await Promise.all(Array.from({ length: 20 }, freePort))
  for (const port of ports) {
    expect(port).toBeGreaterThanOrEqual(10_000)
    expect(port).toBeLessThan(32_000)
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
    await new Promise((resolve) => server.close(resolve))
  }
})
