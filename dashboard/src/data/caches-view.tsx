import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { pushQuery, replaceQuery, useLocation } from "../routing/use-location";
import { SampleJobDialog } from "./sample-job-dialog";
import { SampleJobsTable } from "./sample-jobs-table";
import { SetsTable } from "./sets-table";
import "./data.css";

/** The sample sets and the sample jobs. The address shows which of them, and the filters. */
export function CachesView() {
  const { query } = useLocation();
  const shown = query.get("show") === "jobs" ? "jobs" : "sets";
  const open = query.get("open");
  const change = (name: string, value: string) => {
    const changed = new URLSearchParams(query);
    if (value === "") changed.delete(name);
    else changed.set(name, value);
    // Back leads from an open dialog to the table, and not again to a closed one.
    const isClosing = name === "open" && value === "";
    (isClosing ? replaceQuery : pushQuery)(changed);
  };
  return (
    <div className="view view-list data-view">
      <h1 className="visually-hidden">Data</h1>
      <Tabs
        className="data-tabs"
        selectedKey={shown}
        onSelectionChange={(key) => change("show", key === "jobs" ? "jobs" : "")}
      >
        <TabList aria-label="Data" className="tab-list">
          <Tab id="sets" className="tab">
            Sample sets
          </Tab>
          <Tab id="jobs" className="tab">
            Sample jobs
          </Tab>
        </TabList>
        <TabPanel id="sets" className="view-list">
          <SetsTable />
        </TabPanel>
        <TabPanel id="jobs" className="view-list">
          <SampleJobsTable
            set={query.get("set") ?? ""}
            onSet={(set) => change("set", set)}
            onOpen={(uid) => change("open", uid)}
          />
        </TabPanel>
      </Tabs>
      {open !== null && <SampleJobDialog uid={open} onClose={() => change("open", "")} />}
    </div>
  );
}
