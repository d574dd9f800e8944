// #region node
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Layer from "effect/Layer"
import { Shop } from "./fleetShop.ts"

const fleet = PostgresFleet.layer({ url: process.env["DATABASE_URL"]! })
NodeHttp.runMain(Layer.provideMerge(Shop, fleet), { health: true, drainDelay: "10 seconds" })
// #endregion
