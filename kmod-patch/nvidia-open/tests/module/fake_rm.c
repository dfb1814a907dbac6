// SPDX-License-Identifier: GPL-2.0-only
/*
 * A Resource Manager for tests, without a GPU: clients that belong to an open file, a tree of objects below each, and
 * FIFO_DISABLE_CHANNELS with the rules seen on hardware: disables are counted, an enable too many is ignored, a list is
 * walked in order up to the first channel that is not there. Serves /dev/fake-nvidiactl through the very functions that
 * the semantic patch puts into the driver.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "fake_rm.h"
#include "gpuseg_nv_glue.h"

#define ESC_FREE 0x29
#define ESC_ALLOC 0x2b
#define ESC_DUP 0x34
#define BLOCK_MAX 64

#define ERR_INVALID_CHANNEL 0x21
#define ERR_INVALID_CLIENT 0x23
#define ERR_INVALID_OBJECT_PARENT 0x36
#define ERR_INSERT_DUPLICATE_NAME 0x19
#define ERR_NOT_SUPPORTED 0x56
#define ERR_OBJECT_NOT_FOUND 0x57

struct fake_client {
	struct list_head of_file;
	struct list_head all;
	struct list_head objects;
	nv_file_private_t *owner;
	u32 handle;
};

struct fake_object {
	struct list_head entry;
	u32 handle;
	u32 parent;
	u32 class_id;
	u32 gpu;
	u32 disables;
};

DECLARE_RWSEM(nv_system_pm_lock);

static DEFINE_MUTEX(rm_lock);
static LIST_HEAD(all_clients);
static u32 next_client = 0xc1d00000;
static struct fake_dump counts;
static struct fake_inject injected;

static struct fake_client *find_client(u32 handle)
{
	struct fake_client *c;

	list_for_each_entry(c, &all_clients, all)
		if (c->handle == handle)
			return c;
	return NULL;
}

static struct fake_object *find_object(const struct fake_client *c, u32 handle)
{
	struct fake_object *o;

	list_for_each_entry(o, &c->objects, entry)
		if (o->handle == handle)
			return o;
	return NULL;
}

static bool is_channel(const struct fake_object *o)
{
	return (o->class_id & 0xff) == 0x6f;
}

static u32 rm_alloc(nv_file_private_t *file, u32 *block)
{
	struct fake_object *o, *parent;
	struct fake_client *c;
	void __user *params = u64_to_user_ptr(*(u64 *)&block[4]);
	u32 device = 0;

	if (block[3] == 0x41) {
		c = kzalloc(sizeof(*c), GFP_KERNEL);
		if (!c)
			return NV_ERR_NO_MEMORY;
		INIT_LIST_HEAD(&c->objects);
		c->owner = file;
		c->handle = next_client++;
		block[0] = c->handle;
		block[2] = c->handle;
		list_add_tail(&c->of_file, &file->clients);
		list_add_tail(&c->all, &all_clients);
		return NV_OK;
	}
	c = find_client(block[0]);
	if (!c || c->owner != file)
		return ERR_INVALID_CLIENT;
	parent = find_object(c, block[1]);
	if (!parent && block[1] != c->handle)
		return ERR_INVALID_OBJECT_PARENT;
	if (find_object(c, block[2]))
		return ERR_INSERT_DUPLICATE_NAME;
	if (block[3] == 0x80 && params && copy_from_user(&device, params, sizeof(device)))
		return ERR_NOT_SUPPORTED;
	o = kzalloc(sizeof(*o), GFP_KERNEL);
	if (!o)
		return NV_ERR_NO_MEMORY;
	o->handle = block[2];
	o->parent = block[1];
	o->class_id = block[3];
	o->gpu = parent ? parent->gpu : 0x100 * (device + 1);
	list_add_tail(&o->entry, &c->objects);
	return NV_OK;
}

static void free_below(struct fake_client *c, u32 handle)
{
	struct fake_object *o;
	bool more;

	do {
		more = false;
		list_for_each_entry(o, &c->objects, entry)
			if (o->parent == handle) {
				free_below(c, o->handle);
				list_del(&o->entry);
				kfree(o);
				more = true;
				break;
			}
	} while (more);
}

static void free_client(struct fake_client *c)
{
	free_below(c, c->handle);
	WARN_ON(!list_empty(&c->objects));
	list_del(&c->of_file);
	list_del(&c->all);
	kfree(c);
}

static u32 rm_free(nv_file_private_t *file, u32 *block)
{
	struct fake_client *c = find_client(block[0]);
	struct fake_object *o;

	if (!c || c->owner != file)
		return ERR_INVALID_CLIENT;
	if (injected.count && injected.enables == 2) {
		injected.count--;
		return injected.status;
	}
	if (block[2] == c->handle) {
		free_client(c);
		return NV_OK;
	}
	o = find_object(c, block[2]);
	if (!o)
		return ERR_OBJECT_NOT_FOUND;
	free_below(c, o->handle);
	list_del(&o->entry);
	kfree(o);
	return NV_OK;
}

static u32 rm_duplicate(nv_file_private_t *file, u32 *block)
{
	struct fake_client *to = find_client(block[0]);
	struct fake_client *from = find_client(block[3]);
	struct fake_object *o = from ? find_object(from, block[4]) : NULL;
	struct fake_object *copy;

	if (!to || to->owner != file || !o)
		return ERR_INVALID_CLIENT;
	if (!find_object(to, block[1]) || find_object(to, block[2]))
		return ERR_INVALID_OBJECT_PARENT;
	copy = kmemdup(o, sizeof(*o), GFP_KERNEL);
	if (!copy)
		return NV_ERR_NO_MEMORY;
	copy->parent = block[1];
	copy->handle = block[2];
	copy->disables = 0;
	list_add_tail(&copy->entry, &to->objects);
	return NV_OK;
}

NV_STATUS rm_ioctl(nvidia_stack_t *sp, nv_state_t *nv, nv_file_private_t *nvfp, NvU32 cmd, void *data, NvU32 size)
{
	u32 *block = data;

	mutex_lock(&rm_lock);
	switch (cmd) {
	case ESC_ALLOC:
		block[size >= 48 ? 10 : 7] = rm_alloc(nvfp, block);
		break;
	case ESC_FREE:
		block[3] = rm_free(nvfp, block);
		break;
	case ESC_DUP:
		block[6] = rm_duplicate(nvfp, block);
		break;
	default:
		mutex_unlock(&rm_lock);
		return ERR_NOT_SUPPORTED;
	}
	mutex_unlock(&rm_lock);
	return NV_OK;
}

struct disable_block {
	u8 disable;
	u8 pad0[3];
	u32 count;
	u8 pad1[16];
	u32 client[64];
	u32 channel[64];
};

static u32 switch_channels(const struct fake_object *subdevice, const struct disable_block *d)
{
	const bool fault = injected.count && injected.enables != 2 && !d->disable == !!injected.enables;
	u32 i;

	if (injected.delay_us)
		usleep_range(injected.delay_us, injected.delay_us + 10);
	counts.calls++;
	counts.largest = max(counts.largest, d->count);
	if (d->count > 64 || subdevice->class_id != 0x2080)
		return ERR_NOT_SUPPORTED;
	for (i = 0; i < d->count; i++) {
		struct fake_client *c = find_client(d->client[i]);
		struct fake_object *o = c ? find_object(c, d->channel[i]) : NULL;

		if (fault && i == injected.at) {
			injected.count--;
			return injected.status;
		}
		if (!o || !is_channel(o)) {
			counts.gone++;
			return ERR_INVALID_CHANNEL;
		}
		if (o->gpu != subdevice->gpu) {
			counts.wrong_gpu++;
			return ERR_INVALID_CHANNEL;
		}
		if (d->disable) {
			counts.twice += o->disables != 0;
			o->disables++;
		} else if (o->disables) {
			o->disables--;
		}
	}
	return NV_OK;
}

struct control_block {
	u32 op;
	u32 pad;
	u32 client;
	u32 object;
	u32 command;
	u32 flags;
	u64 params;
	u32 params_size;
	u32 status;
};

void rm_kernel_rmapi_op(nvidia_stack_t *sp, void *op)
{
	struct control_block *b = op;
	struct fake_client *c;
	struct fake_object *o;

	mutex_lock(&rm_lock);
	c = find_client(b->client);
	o = c ? find_object(c, b->object) : NULL;
	if (b->op != 0x36) {
		b->status = ERR_NOT_SUPPORTED;
	} else if (!o) {
		counts.gone++;
		b->status = c ? ERR_OBJECT_NOT_FOUND : ERR_INVALID_CLIENT;
	} else if (b->command == 0x20800142 && b->params_size == sizeof(u32)) {
		*(u32 *)(uintptr_t)b->params = o->gpu;
		b->status = NV_OK;
	} else if (b->command == 0x2080110b && b->params_size == 536) {
		b->status = switch_channels(o, (void *)(uintptr_t)b->params);
	} else {
		b->status = ERR_NOT_SUPPORTED;
	}
	mutex_unlock(&rm_lock);
}

static int fake_open(struct inode *inode, struct file *file)
{
	nv_linux_file_private_t *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	INIT_LIST_HEAD(&f->nvfp.clients);
	file->private_data = f;
	return 0;
}

static int fake_release(struct inode *inode, struct file *file)
{
	nv_linux_file_private_t *f = file->private_data;
	struct fake_client *c, *next;

	gpuseg_nv_file_closing(f);
	mutex_lock(&rm_lock);
	list_for_each_entry_safe(c, next, &f->nvfp.clients, of_file)
		free_client(c);
	mutex_unlock(&rm_lock);
	kfree(f);
	return 0;
}

static long fake_dump(struct fake_dump __user *arg)
{
	struct fake_channel *list;
	struct fake_client *c;
	struct fake_object *o;
	struct fake_dump d;
	long rc = 0;

	if (copy_from_user(&d, arg, sizeof(d)) || d.room > 8192)
		return -EFAULT;
	list = kvcalloc(d.room + 1, sizeof(*list), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	mutex_lock(&rm_lock);
	counts.channels = d.channels;
	counts.room = d.room;
	counts.count = 0;
	counts.clients = 0;
	list_for_each_entry(c, &all_clients, all) {
		counts.clients++;
		list_for_each_entry(o, &c->objects, entry) {
			if (!is_channel(o))
				continue;
			if (counts.count < d.room)
				list[counts.count] = (struct fake_channel){ c->handle, o->handle, o->disables, o->gpu };
			counts.count++;
		}
	}
	d = counts;
	mutex_unlock(&rm_lock);
	if (copy_to_user(u64_to_user_ptr(d.channels), list, min(d.count, d.room) * sizeof(*list)) ||
	    copy_to_user(arg, &d, sizeof(d)))
		rc = -EFAULT;
	kvfree(list);
	return rc;
}

static long fake_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	u32 block[BLOCK_MAX / sizeof(u32)] __aligned(8) = {0};
	const u32 size = _IOC_SIZE(cmd);
	NV_STATUS status;
	long rc = 0;

	if (cmd == FAKE_DUMP)
		return fake_dump((void __user *)arg);
	if (cmd == FAKE_INJECT) {
		mutex_lock(&rm_lock);
		if (copy_from_user(&injected, (void __user *)arg, sizeof(injected)))
			rc = -EFAULT;
		mutex_unlock(&rm_lock);
		return rc;
	}
	if (_IOC_TYPE(cmd) != 'F' || size > BLOCK_MAX)
		return -ENOTTY;
	if (copy_from_user(block, (void __user *)arg, size))
		return -EFAULT;
	down_read(&nv_system_pm_lock);
	status = gpuseg_nv_rm_ioctl(NULL, NULL, file->private_data, _IOC_NR(cmd), block, size);
	up_read(&nv_system_pm_lock);
	if (copy_to_user((void __user *)arg, block, size))
		return -EFAULT;
	return status == NV_OK ? 0 : -EINVAL;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = fake_open,
	.release = fake_release,
	.unlocked_ioctl = fake_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "fake-nvidiactl",
	.fops = &operations,
	.mode = 0666,
};

static int __init fake_init(void)
{
	gpuseg_nv_init();
	return misc_register(&device);
}

static void __exit fake_exit(void)
{
	misc_deregister(&device);
	gpuseg_nv_exit();
	WARN_ON(!list_empty(&all_clients));
}

module_init(fake_init);
module_exit(fake_exit);
MODULE_DESCRIPTION("Stand-in for NVIDIA's driver, with gpuseg's patch");
MODULE_LICENSE("GPL");
