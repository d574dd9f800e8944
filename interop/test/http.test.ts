/**
 * Over HTTP: the official clients with our server, in each revision that both speak, over each transport that they have.
 */
import { afterAll, beforeAll, describe } from "vitest"
import type { TalkingClient } from "../clients.ts"
import { conversations } from "../conversations.ts"
import { expectations } from "../expectations.ts"
import * as Offer from "../fixtures/skein-offer.ts"
import * as Talk from "../fixtures/skein-talk.ts"
import { type HttpMeeting, httpTable, manner } from "../matrix.ts"
import * as SdkV1 from "../sdk-v1-client.ts"
import * as SdkV2 from "../sdk-v2-client.ts"
import { serve, type Serving } from "../serving.ts"

const clients = { "sdk-v1": SdkV1.talk, "sdk-v2": SdkV2.talk }

let offer: Serving
let talk: Serving
beforeAll(async () => {
  offer = await serve(Offer.server)
  talk = await serve(Talk.server())
})
afterAll(async () => {
  await offer.close()
  await talk.close()
})

const meet = (
  meeting: HttpMeeting,
  server: () => Serving,
  expected: (connected: () => TalkingClient) => void
): void => {
  let client: TalkingClient | undefined
  beforeAll(async () => {
    client = await clients[meeting.client](server()[meeting.transport], { revision: meeting.ask })
  })
  afterAll(() => client?.close())
  expected(() => client!)
}

for (const meeting of httpTable) {
  describe(`${meeting.agreed} · ${meeting.client} client over ${meeting.transport}${manner(meeting)}`, () => {
    describe("what is offered", () => meet(meeting, () => offer, (connected) => expectations(meeting, connected)))
    describe("what is said", () => meet(meeting, () => talk, (connected) => conversations(meeting, connected)))
  })
}
