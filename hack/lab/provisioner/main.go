// Command provisioner makes the volumes of the lab's default storage class. It
// runs on every node and looks after that node's claims alone: a volume is a
// folder on the node's disk. The usual provisioner library is left out because
// its claim locks and back-off cost seconds per volume, which tests would pay.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	provisionerName = "howdah-lab/local"
	volumesDir      = "/var/lib/howdah-lab/volumes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	node := os.Getenv("NODE_NAME")
	if node == "" {
		return fmt.Errorf("NODE_NAME is not set")
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, time.Minute)
	core := factory.Core().V1()
	p := &provisioner{
		client:  client,
		node:    node,
		claims:  core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[item](100*time.Millisecond, 5*time.Second)),
	}
	for _, informer := range []cache.SharedIndexInformer{core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()} {
		if _, err := informer.AddEventHandler(p.handler()); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	log.Printf("provisioning for %s", node)
	for p.next(ctx) {
	}
	return nil
}

// item names a claim, or a volume when the namespace is empty.
type item struct {
	namespace, name string
}

func (p *provisioner) handler() cache.ResourceEventHandler {
	add := func(obj any) {
		switch o := obj.(type) {
		case *corev1.PersistentVolumeClaim:
			p.queue.Add(item{o.Namespace, o.Name})
		case *corev1.PersistentVolume:
			p.queue.Add(item{"", o.Name})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, obj any) { add(obj) },
	}
}

func (p *provisioner) next(ctx context.Context) bool {
	key, quit := p.queue.Get()
	if quit {
		return false
	}
	defer p.queue.Done(key)
	if err := p.reconcile(ctx, key); err != nil {
		log.Printf("%s/%s: %v", key.namespace, key.name, err)
		p.queue.AddRateLimited(key)
		return true
	}
	p.queue.Forget(key)
	return true
}

func folder(volume string) string {
	return filepath.Join(volumesDir, filepath.Base(volume))
}
