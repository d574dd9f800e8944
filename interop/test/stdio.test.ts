/**
 * Over stdio: the official clients with our server, our client with the official servers, in each revision that both speak.
 * And what is said beside answers, of which HTTP has the whole table.
 */
import { afterAll, beforeAll, describe } from "vitest"
import type { AnyClient, Connect, TalkingClient } from "../clients.ts"
import { conversations } from "../conversations.ts"
import { expectations } from "../expectations.ts"
import { type ClientName, manner, type Meeting, serverCommand, table } from "../matrix.ts"
import * as SdkV1 from "../sdk-v1-client.ts"
import * as SdkV2 from "../sdk-v2-client.ts"
import * as Skein from "../skein-client.ts"

const clients: Readonly<Record<ClientName, Connect>> = {
  skein: Skein.connect,
  "sdk-v1": SdkV1.connect,
  "sdk-v2": SdkV2.connect
}

for (const meeting of table) {
  const connect = clients[meeting.client]
  describe(`${meeting.agreed} · ${meeting.client} client, ${meeting.server} server${manner(meeting)}`, () => {
    let client: AnyClient | undefined
    beforeAll(async () => {
      client = await connect(serverCommand(meeting.server, meeting.serve), meeting.ask)
    })
    afterAll(() => client?.close())
    expectations(meeting, () => client!)
  })
}

const talking: ReadonlyArray<Meeting> = [
  { client: "sdk-v1", server: "skein", ask: undefined, serve: undefined, agreed: "2025-11-25" },
  { client: "sdk-v2", server: "skein", ask: undefined, serve: undefined, agreed: "2025-11-25" },
  { client: "sdk-v2", server: "skein", ask: "auto", serve: undefined, agreed: "2026-07-28" }
]

for (const meeting of talking) {
  const { talk } = meeting.client === "sdk-v1" ? SdkV1 : SdkV2
  describe(`${meeting.agreed} · ${meeting.client} client talks with the skein server${manner(meeting)}`, () => {
    let client: TalkingClient | undefined
    beforeAll(async () => {
      client = await talk(serverCommand("skein-talk"), { revision: meeting.ask })
    })
    afterAll(() => client?.close())
    conversations(meeting, () => client!)
  })
}
