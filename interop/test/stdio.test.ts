/**
 * Over stdio: the official clients with our server, our client with the official servers, in each revision that both speak.
 */
import { afterAll, beforeAll, describe } from "vitest"
import type { AnyClient, Connect } from "../clients.ts"
import { expectations } from "../expectations.ts"
import { type ClientName, manner, serverCommand, table } from "../matrix.ts"
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
