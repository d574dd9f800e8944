/**
 * A test of ten official clients at once with `fixtures/skeinInteractive.ts`, round after round. Each client has its own
 * session and a stream. `CLIENT_ROUNDS` sets the number of rounds: 3 by default.
 */
import { expect, it } from "vitest"
import { eventually } from "./eventually.ts"
import { textOf } from "./interactiveClientTests.ts"
import * as SdkV1 from "./sdkV1Client.ts"
import * as SdkV2 from "./sdkV2Client.ts"
import type { InteractiveClient, ServerAddress } from "./testClient.ts"

const rounds = Number(process.env["CLIENT_ROUNDS"] ?? "3")
const clientsOfEach = 5
const calls = 20

const visit = async (connect: (user: string) => Promise<InteractiveClient>, user: string): Promise<void> => {
  const client = await connect(user)
  try {
    const unwatch = await client.watch({ resource: "test://watched" })
    for (let n = 0; n < calls; n++) {
      expect(textOf(await client.call("region", { region: `${user}/${n}` }))).toBe(`Working in ${user}/${n}`)
    }
    expect(textOf(await client.call("model", {}))).toBe(`${user} said`)
    expect(textOf(await client.call("places", {}))).toBe(`file:///home/${user}`)
    await client.call("touch", { uri: "test://watched" })
    await eventually(() => expect(client.received.updated).toContain("test://watched"))
    await unwatch()
    await client.terminate()
  } finally {
    await client.close()
  }
}

export const manyClientsTest = (server: () => ServerAddress): void => {
  it("ten clients at once call, answer questions and receive changes, each in its session", async () => {
    for (let round = 0; round < rounds; round++) {
      await Promise.all(
        Array.from({ length: clientsOfEach }, (_, n) => [
          visit((user) => SdkV1.connectInteractive(server(), { user }), `v1-${round}-${n}`),
          visit((user) => SdkV2.connectInteractive(server(), { user, revision: "2025-11-25" }), `v2-${round}-${n}`)
        ]).flat()
      )
    }
  })
}
