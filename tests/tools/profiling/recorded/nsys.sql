CREATE TABLE StringIds (
    -- Consolidation of repetitive string values.

    id                          INTEGER   NOT NULL   PRIMARY KEY,      -- ID reference value.
    value                       TEXT      NOT NULL                     -- String value.
);
INSERT INTO StringIds VALUES (27, 'cuProfilerStop');
INSERT INTO StringIds VALUES (26, 'cuCtxSynchronize');
INSERT INTO StringIds VALUES (25, 'cudaLaunchKernel_v7000');
INSERT INTO StringIds VALUES (23, 'scaled(const float *, float *, long)');
INSERT INTO StringIds VALUES (22, 'cuKernelGetName');
INSERT INTO StringIds VALUES (21, 'cuProfilerStart');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start                       INTEGER   NOT NULL,                    -- Event start timestamp (ns).
    end                         INTEGER   NOT NULL,                    -- Event end timestamp (ns).
    deviceId                    INTEGER   NOT NULL,                    -- Device ID.
    contextId                   INTEGER   NOT NULL,                    -- Context ID.
    greenContextId              INTEGER,                               -- Green context ID.
    streamId                    INTEGER   NOT NULL,                    -- Stream ID.
    correlationId               INTEGER,                               -- REFERENCES CUPTI_ACTIVITY_KIND_RUNTIME(correlationId)
    globalPid                   INTEGER,                               -- Serialized GlobalId.
    demangledName               INTEGER   NOT NULL,                    -- REFERENCES StringIds(id) -- Kernel function name w/ templates
    shortName                   INTEGER   NOT NULL,                    -- REFERENCES StringIds(id) -- Base kernel function name
    mangledName                 INTEGER,                               -- REFERENCES StringIds(id) -- Raw C++ mangled kernel function name
    launchType                  INTEGER,                               -- REFERENCES ENUM_CUDA_KERNEL_LAUNCH_TYPE(id)
    cacheConfig                 INTEGER,                               -- REFERENCES ENUM_CUDA_FUNC_CACHE_CONFIG(id)
    registersPerThread          INTEGER   NOT NULL,                    -- Number of registers required for each thread executing the kernel.
    gridX                       INTEGER   NOT NULL,                    -- X-dimension grid size.
    gridY                       INTEGER   NOT NULL,                    -- Y-dimension grid size.
    gridZ                       INTEGER   NOT NULL,                    -- Z-dimension grid size.
    blockX                      INTEGER   NOT NULL,                    -- X-dimension block size.
    blockY                      INTEGER   NOT NULL,                    -- Y-dimension block size.
    blockZ                      INTEGER   NOT NULL,                    -- Z-dimension block size.
    staticSharedMemory          INTEGER   NOT NULL,                    -- Static shared memory allocated for the kernel (B).
    dynamicSharedMemory         INTEGER   NOT NULL,                    -- Dynamic shared memory reserved for the kernel (B).
    localMemoryPerThread        INTEGER   NOT NULL,                    -- Amount of local memory reserved for each thread (B).
    localMemoryTotal            INTEGER   NOT NULL,                    -- Total amount of local memory reserved for the kernel (B).
    gridId                      INTEGER   NOT NULL,                    -- Unique grid ID of the kernel assigned at runtime.
    sharedMemoryExecuted        INTEGER,                               -- Shared memory size set by the driver.
    graphNodeId                 INTEGER,                               -- REFERENCES CUDA_GRAPH_NODE_EVENTS(graphNodeId)
    sharedMemoryLimitConfig     INTEGER                                -- REFERENCES ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG(id)
);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (23985140, 24110163, 0, 1, 0, 13, 260, 281929790259200, 23, 24, 20, 1, 1, 22, 65536, 1, 1, 256, 1, 1, 0, 0, 0, 155713536, 2, 32768, NULL, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (24111891, 24238482, 0, 1, 0, 13, 263, 281929790259200, 23, 24, 20, 1, 1, 22, 65536, 1, 1, 256, 1, 1, 0, 0, 0, 155713536, 3, 32768, NULL, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (24239762, 24366450, 0, 1, 0, 13, 266, 281929790259200, 23, 24, 20, 1, 1, 22, 65536, 1, 1, 256, 1, 1, 0, 0, 0, 155713536, 4, 32768, NULL, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (24367634, 24494001, 0, 1, 0, 13, 269, 281929790259200, 23, 24, 20, 1, 1, 22, 65536, 1, 1, 256, 1, 1, 0, 0, 0, 155713536, 5, 32768, NULL, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (24495505, 24624688, 0, 1, 0, 13, 272, 281929790259200, 23, 24, 20, 1, 1, 22, 65536, 1, 1, 256, 1, 1, 0, 0, 0, 155713536, 6, 32768, NULL, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start                       INTEGER   NOT NULL,                    -- Event start timestamp (ns).
    end                         INTEGER   NOT NULL,                    -- Event end timestamp (ns).
    eventClass                  INTEGER   NOT NULL,                    -- REFERENCES ENUM_NSYS_EVENT_CLASS(id)
    globalTid                   INTEGER,                               -- Serialized GlobalId.
    correlationId               INTEGER,                               -- ID used to identify events that this function call has triggered.
    nameId                      INTEGER   NOT NULL,                    -- REFERENCES StringIds(id) -- Function name
    returnValue                 INTEGER   NOT NULL,                    -- Return value of the function call.
    callchainId                 INTEGER                                -- REFERENCES CUDA_CALLCHAINS(id)
);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (23807480, 23813735, 1, 281929790286309, 258, 21, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (23933421, 23934605, 1, 281929790286309, 259, 22, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (23936924, 23991803, 0, 281929790286309, 260, 25, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24025386, 24025686, 1, 281929790286309, 262, 22, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24026042, 24035390, 0, 281929790286309, 263, 25, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24057223, 24057408, 1, 281929790286309, 265, 22, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24057778, 24064870, 0, 281929790286309, 266, 25, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24086046, 24086228, 1, 281929790286309, 268, 22, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24086567, 24094752, 0, 281929790286309, 269, 25, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24114333, 24114487, 1, 281929790286309, 271, 22, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24114736, 24120364, 0, 281929790286309, 272, 25, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24128541, 24630573, 1, 281929790286309, 274, 26, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24655671, 24656143, 1, 281929790286309, 275, 27, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (24661543, 24666067, 1, 281929790286309, 275, 26, 0, NULL);
